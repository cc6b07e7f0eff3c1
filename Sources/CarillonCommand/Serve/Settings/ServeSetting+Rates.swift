import CarillonCore
import CarillonServer

extension ServeSetting {
    /// The rate limits of senders, devices and apps.
    static let rates: [ServeSetting] = [
        rate("channel-rate", \.rateLimits.channelMessages, "[Messages](guarantees.md) to one channel."),
        rate("device-rate", \.rateLimits.deviceMessages, "Messages to one device."),
        rate("app-rate", \.rateLimits.appMessages, "Messages to one app."),
        rate("item-rate", \.rateLimits.appUpdates, "Updates of the items of one app."),
        rate(
            "registration-rate", \.rateLimits.deviceRegistrations,
            "Channels that one device opens, and changes of its registration."),
        rate(
            "address-rate", \.rateLimits.addressRegistrations,
            "Devices, channels and changes that come from one address."),
        optionalNumber(
            "anonymous-per-address", \.rateLimits.anonymousDevices, counts,
            "Anonymous devices that come from one address, or from one /64 of IPv6. The `register` of further ones gets 500."
        ),
        rate(
            "upload-rate", \.rateLimits.uploads,
            "Uploads of attachments that one device, or the senders of one app, begin."),
        rate(
            "service-request-rate", \.rateLimits.serviceRequests,
            "Requests of [services](services.md) that one device makes."),
    ]
}
