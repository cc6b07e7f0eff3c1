import CarillonWire

/// How messages of a channel reach an app that sleeps.
public struct PushChannelWake: Hashable, Sendable {
    let mode: WakeMode

    /// Not at all: they wait until the app runs.
    public static let none = PushChannelWake(mode: .none)
    /// Apple's service wakes the app in the background, some times an hour at most. Messages that their sender calls urgent are
    /// shown as an alert where the operator set a text for the app.
    public static let background = PushChannelWake(mode: .background)
    /// Each is shown as an alert, where the operator set a text for the app.
    public static let alert = PushChannelWake(mode: .alert)
}
