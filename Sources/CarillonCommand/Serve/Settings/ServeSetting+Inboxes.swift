import CarillonCore
import CarillonServer

extension ServeSetting {
    /// The settings of inboxes and devices.
    static let inboxes: [ServeSetting] = [
        number("window-envelopes", \.window.envelopes, counts, "The number of unanswered messages of a connection."),
        number("window-bytes", \.window.bytes, byteCounts, "The bytes of the unanswered messages of a connection."),
        number(
            "inbox-envelopes", \.store.inbox.envelopes, counts,
            "The number of messages that can wait for one device."),
        number(
            "inbox-bytes", \.store.inbox.bytes, byteCounts,
            "The bytes of the messages that can wait for one device."),
        longNumber(
            "outcome-seconds", \.store.inbox.outcomeRetentionSeconds, keepingSeconds,
            "How long outcomes are kept, by [both clocks](guarantees.md#clocks)."),
        number(
            "outcomes-per-device", \.store.inbox.outcomes, counts,
            "The number of outcomes that are kept for one device. The newest are kept."),
        number(
            "idempotency-keys-per-device", \.store.inbox.idempotencyKeys, counts,
            "The number of idempotency keys that are kept for one device. The newest are kept."),
        number(
            "devices-per-app", \.store.devicesPerApp, counts,
            "The number of devices of an app, anonymous devices included."),
        number(
            "anonymous-idle-seconds", \.anonymousIdleSeconds, keepingSeconds,
            """
            An anonymous device that did not connect for so long is removed, by [both \
            clocks](guarantees.md#clocks).
            """),
        number(
            "anonymous-unused-seconds", \.anonymousUnusedSeconds, keepingSeconds,
            "The same for an anonymous device without a channel."),
        number(
            "inactive-seconds", \.inactiveSeconds, keepingSeconds,
            """
            A registered device that was not seen for so long is removed, by [both \
            clocks](guarantees.md#clocks). The time is kept to the day.
            """),
        number(
            "suspended-seconds", \.suspendedSeconds, keepingSeconds,
            "The same for a device that was suspended and not seen for so long."),
    ]
}
