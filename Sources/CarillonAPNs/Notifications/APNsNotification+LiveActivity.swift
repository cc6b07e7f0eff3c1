#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// How a Live Activity that a push starts receives its updates.
public struct APNsActivityUpdates: Sendable {
    let input: ActivityFields.Input

    /// The device generates a token for the activity, and the app reports the token to its backend.
    public static let token = APNsActivityUpdates(input: .token)

    /// The activity listens to a broadcast channel.
    public static func channel(_ id: String) -> APNsActivityUpdates { APNsActivityUpdates(input: .channel(id)) }
}

/// Live Activities. In the payload, their alert differs from an ordinary alert: localised texts are nested, and the sound is
/// inside of the alert. Set the alert with the same methods; the client writes the correct form.
extension APNsNotification {
    /// Starts a Live Activity on a device. It must have an alert: chain ``title(_:)`` or ``body(_:)``.
    /// - Parameters:
    ///   - attributesType: the name of the activity's `ActivityAttributes` type.
    ///   - attributes: the attributes of the activity, encoded with Foundation's defaults.
    ///   - contentState: the first state, encoded with Foundation's defaults.
    ///   - updates: how the activity receives its updates; nil leaves the choice to the app.
    ///   - timestamp: the time of the state. The device ignores a state that is older than its present one.
    public static func startLiveActivity(
        attributesType: String, attributes: some Encodable & Sendable, contentState: some Encodable & Sendable,
        updates: APNsActivityUpdates? = nil, timestamp: Date = Date()
    ) -> Self {
        activity(.start, timestamp, contentState)
            .encoding("attributes", attributes) { $0.activity?.attributes = $1 }
            .with {
                $0.activity?.attributesType = attributesType
                $0.activity?.input = updates?.input
            }
    }

    /// Updates the state of a Live Activity.
    public static func updateLiveActivity(
        contentState: some Encodable & Sendable, timestamp: Date = Date()
    ) -> Self {
        activity(.update, timestamp, contentState)
    }

    /// Ends a Live Activity with a last state.
    /// - Parameters:
    ///   - contentState: the last state, encoded with Foundation's defaults.
    ///   - dismissalDate: the time at which the activity leaves the lock screen; nil for the system's choice, within four
    ///     hours.
    ///   - timestamp: the time of the state.
    public static func endLiveActivity(
        contentState: some Encodable & Sendable, dismissalDate: Date? = nil, timestamp: Date = Date()
    ) -> Self {
        let end = activity(.end, timestamp, contentState)
        guard let dismissalDate else { return end }
        return end.dismissalDate(dismissalDate)
    }

    /// Ends a Live Activity with its present state.
    public static func endLiveActivity(dismissalDate: Date? = nil, timestamp: Date = Date()) -> Self {
        let end = APNsNotification(type: .liveActivity).with {
            $0.activity = ActivityFields(event: .end, timestamp: WholeSeconds.of(timestamp))
        }
        guard let dismissalDate else { return end }
        return end.dismissalDate(dismissalDate)
    }

    /// Sets the time from which the activity's state is out of date. This is valid only for a Live Activity; with any other
    /// push type, sending throws.
    public consuming func staleDate(_ date: Date) -> Self {
        changingActivity("staleDate(_:)") { $0.staleDate = WholeSeconds.of(date) }
    }

    /// Sets the time at which an ended activity leaves the lock screen. This is valid only for the end of a Live Activity;
    /// with any other notification, sending throws.
    public consuming func dismissalDate(_ date: Date) -> Self {
        changingActivity("dismissalDate(_:)") { $0.dismissalDate = WholeSeconds.of(date) }
    }

    private consuming func changingActivity(_ method: String, _ change: (inout ActivityFields) -> Void) -> Self {
        with { fields in
            guard var activity = fields.activity else {
                fields.activityMethod = method
                return
            }
            change(&activity)
            fields.activity = activity
        }
    }

    private static func activity(
        _ event: ActivityFields.Event, _ timestamp: Date, _ contentState: some Encodable & Sendable
    ) -> Self {
        APNsNotification(type: .liveActivity)
            .with { $0.activity = ActivityFields(event: event, timestamp: WholeSeconds.of(timestamp)) }
            .encoding("content-state", contentState) { $0.activity?.contentState = $1 }
    }

    private consuming func encoding(
        _ key: String, _ value: some Encodable & Sendable, _ keep: (inout NotificationFields, JSONFragment) -> Void
    ) -> Self {
        with { fields in
            do {
                keep(&fields, try JSONFragment(encoding: value))
            } catch {
                fields.activityFault = "\(key) cannot be encoded: \(EncodingFault.describe(error, of: value))"
            }
        }
    }
}
