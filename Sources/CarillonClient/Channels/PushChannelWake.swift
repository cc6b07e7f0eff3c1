import CarillonWire

/// How messages of a channel reach an app that is not running.
public struct PushChannelWake: Hashable, Sendable {
    let mode: WakeMode

    /// Messages do not wake the app. They wait until it runs.
    public static let none = PushChannelWake(mode: .none)
    /// Apple's push service wakes the app in the background, up to a few times an hour. Messages with a high urgency are shown as
    /// an alert if the operator set a text for the app.
    public static let background = PushChannelWake(mode: .background)
    /// Each message is shown as an alert if the operator set a text for the app.
    public static let alert = PushChannelWake(mode: .alert)
}
