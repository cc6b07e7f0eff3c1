import CarillonCore
import CarillonServer

extension ServeSetting {
    /// The rate limits of senders, devices and apps.
    static let rates: [ServeSetting] = [
        rate("channel-rate", \.allowances.channelMessages, "[Messages](guarantees.md) to one channel."),
        rate("device-rate", \.allowances.deviceMessages, "Messages to one device."),
        rate("app-rate", \.allowances.appMessages, "Messages to one app."),
        rate("item-rate", \.allowances.appUpdates, "Updates of the items of one app."),
        rate(
            "registration-rate", \.allowances.deviceRegistrations,
            "Channels that one device opens, and changes of its registration."),
        rate(
            "address-rate", \.allowances.addressRegistrations,
            "Devices, channels and changes that come from one address."),
        optionalNumber(
            "anonymous-per-address", \.allowances.anonymousDevices, counts,
            "Anonymous devices that come from one address, or from one /64 of IPv6. The `register` of further ones gets 500."
        ),
        rate(
            "upload-rate", \.allowances.uploads,
            "Uploads of attachments that one device, or the senders of one app, begin."),
        rate(
            "service-request-rate", \.allowances.serviceRequests,
            "Requests of [services](services.md) that one device makes."),
    ]
}
