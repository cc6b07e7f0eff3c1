package import CarillonWire

/// A request to wake a device if an envelope is waiting after it is written.
package struct WakeRequest: Equatable, Sendable {
    package var mode: WakeMode
    /// The earliest time of the push.
    package var dueAt: Timestamp
    /// Whether an alert is sent even if the device acknowledged before.
    package var isUnconditional: Bool
    /// Whether an alert shows the app's own text. If the app has none, the device is woken in the background.
    package var needsAlertText: Bool
    /// Whether the texts of the alert are shortened so that its payload fits.
    package var isShortened: Bool

    package init(
        _ mode: WakeMode, dueAt: Timestamp, isUnconditional: Bool = false, needsAlertText: Bool = true,
        isShortened: Bool = false
    ) {
        self.mode = mode
        self.dueAt = dueAt
        self.isUnconditional = isUnconditional
        self.needsAlertText = needsAlertText
        self.isShortened = isShortened
    }

    /// The number of seconds within which a device that is connected or polls can acknowledge before it is pushed to.
    package static let presenceSeconds: Int64 = 10
}

extension Urgency {
    /// Returns the wake mode of a message on a channel of a mode (RFC 8030 section 5.3: a message of low urgency does not disturb
    /// the device).
    package func wake(on channel: WakeMode) -> WakeMode {
        switch (self, channel) {
        case (.veryLow, _), (.low, _), (_, .none): .none
        case (.high, _), (.normal, .alert): .alert
        case (.normal, .background): .background
        }
    }
}
