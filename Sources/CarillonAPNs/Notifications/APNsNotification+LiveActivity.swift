#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// How a Live Activity that is started by a push takes its updates.
public struct APNsActivityUpdates: Sendable {
    let input: ActivityFields.Input

    /// The device makes a token for the activity and the app reports it.
    public static let token = APNsActivityUpdates(input: .token)

    /// The activity listens to a broadcast channel.
    public static func channel(_ id: String) -> APNsActivityUpdates { APNsActivityUpdates(input: .channel(id)) }
}

/// Live Activities. Their alert differs from an ordinary one in the payload (localised texts are nested, the sound stands
/// inside); set it with the same methods, and it is written the right way.
extension APNsNotification {
    /// Starts a Live Activity on a device. It must have an alert: chain ``title(_:)`` or ``body(_:)``.
    /// - Parameters:
    ///   - attributesType: the name of the activity's `ActivityAttributes` type.
    ///   - attributes: its values, encoded with Foundation's defaults.
    ///   - contentState: the first state, encoded with Foundation's defaults.
    ///   - updates: how it takes its updates; nil leaves that to the app.
    ///   - timestamp: of the state; the device ignores states older than one that it has.
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

    /// Brings a Live Activity into a new state.
    public static func updateLiveActivity(
        contentState: some Encodable & Sendable, timestamp: Date = Date()
    ) -> Self {
        activity(.update, timestamp, contentState)
    }

    /// Ends a Live Activity with its last state.
    /// - Parameters:
    ///   - contentState: the last state, encoded with Foundation's defaults.
    ///   - dismissalDate: when it leaves the lock screen; the system's choice, within four hours, when nil.
    ///   - timestamp: of the state.
    public static func endLiveActivity(
        contentState: some Encodable & Sendable, dismissalDate: Date? = nil, timestamp: Date = Date()
    ) -> Self {
        let end = activity(.end, timestamp, contentState)
        guard let dismissalDate else { return end }
        return end.dismissalDate(dismissalDate)
    }

    /// Ends a Live Activity in the state that it has.
    public static func endLiveActivity(dismissalDate: Date? = nil, timestamp: Date = Date()) -> Self {
        let end = APNsNotification(type: .liveActivity).with {
            $0.activity = ActivityFields(event: .end, timestamp: WholeSeconds.of(timestamp))
        }
        guard let dismissalDate else { return end }
        return end.dismissalDate(dismissalDate)
    }

    /// The time from which the activity's state is out of date. Only for a Live Activity: with any other push type, sending
    /// throws.
    public consuming func staleDate(_ date: Date) -> Self {
        changingActivity("staleDate(_:)") { $0.staleDate = WholeSeconds.of(date) }
    }

    /// When an ended activity leaves the lock screen. Only for the end of a Live Activity: with any other notification, sending
    /// throws.
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
