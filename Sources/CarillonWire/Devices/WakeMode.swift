/// How a device that sleeps is told that a message waits for it.
package enum WakeMode: String, CaseIterable, Sendable {
    /// Not at all: it finds the message when it connects.
    case none
    /// Its app is woken, and shows nothing by itself.
    case background
    /// An alert is shown.
    case alert
}
