import CarillonCore
import CarillonServer

extension ServeSetting {
    /// Inboxes and devices.
    static let inboxes: [ServeSetting] = [
        number(
            "window-envelopes", \.window.envelopes, counts, "The maximum number of unacknowledged messages of a connection."),
        number("window-bytes", \.window.bytes, byteCounts, "The bytes of the unacknowledged messages of a connection."),
        number(
            "inbox-envelopes", \.store.inbox.envelopes, counts,
            "The number of messages that can wait for one device."),
        number(
            "inbox-bytes", \.store.inbox.bytes, byteCounts,
            "The bytes of the messages that can wait for one device."),
        longNumber(
            "outcome-seconds", \.store.inbox.outcomeRetentionSeconds, keepingSeconds,
            "How long outcomes are stored, by [both clocks](guarantees.md#clocks)."),
        number(
            "outcomes-per-device", \.store.inbox.outcomes, counts,
            "The number of outcomes that are stored for one device. The newest are stored."),
        number(
            "idempotency-keys-per-device", \.store.inbox.idempotencyKeys, counts,
            "The number of idempotency keys that are stored for one device. The newest are stored."),
        number(
            "devices-per-app", \.store.devicesPerApp, counts,
            "The number of devices of an app, anonymous devices included."),
        number(
            "anonymous-idle-seconds", \.anonymousIdleSeconds, keepingSeconds,
            """
            An anonymous device is removed after this time without a connection, by [both clocks](guarantees.md#clocks).
            """),
        number(
            "anonymous-unused-seconds", \.anonymousUnusedSeconds, keepingSeconds,
            "The same for an anonymous device without a channel."),
        number(
            "inactive-seconds", \.inactiveSeconds, keepingSeconds,
            """
            A registered device that was not seen for this time is removed, by [both clocks](guarantees.md#clocks). The \
            time is stored to the day.
            """),
        number(
            "suspended-seconds", \.suspendedSeconds, keepingSeconds,
            "The same for a suspended device."),
    ]
}
