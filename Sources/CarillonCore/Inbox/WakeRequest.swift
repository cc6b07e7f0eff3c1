package import CarillonWire

/// That a device be pushed to, when an envelope waits once it is written.
package struct WakeRequest: Equatable, Sendable {
    package var mode: WakeMode
    /// Not before then.
    package var dueAt: Timestamp
    /// An alert goes out also when the device acknowledged before.
    package var isUnconditional: Bool
    /// An alert shows the app's own text, and wakes in the background where the app has none.
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

    /// So long a device that is connected, or polls, may take to acknowledge.
    package static let presenceSeconds: Int64 = 10
}

extension Urgency {
    /// How a message wakes, on a channel of this mode (RFC 8030 section 5.3: the device is not disturbed for low urgency).
    package func wake(on channel: WakeMode) -> WakeMode {
        switch (self, channel) {
        case (.veryLow, _), (.low, _), (_, .none): .none
        case (.high, _), (.normal, .alert): .alert
        case (.normal, .background): .background
        }
    }
}
