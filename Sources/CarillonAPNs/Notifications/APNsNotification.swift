import Synchronization

/// One notification: what it shows, what it carries, and how the service treats it.
///
/// Begin with the factory for the kind of push and chain what it needs; each method returns a changed copy, so that a
/// notification can be kept and varied.
///
/// ```swift
/// let notification = APNsNotification.alert(title: "Kettle", body: "The water boils.")
///     .sound("default")
///     .badge(1)
///     .custom("kettle", 7)
/// ```
///
/// Nothing is checked while chaining. ``APNsClient`` refuses, before anything is sent, what the service would refuse and what
/// the device would ignore, and names the method or the member: see <doc:Checks>. ``withoutChecks()`` turns this off.
/// ``jsonString`` shows exactly what is sent.
public struct APNsNotification: Sendable {
    /// The fields are many, and a notification is handed on often: they stand in one place, copied when they are changed
    /// while somebody else holds them.
    ///
    /// `@unchecked Sendable`: `APNsNotification.fields` alone writes `fields`, and only when `isKnownUniquelyReferenced` says that
    /// nobody else has the box. The other property is atomic.
    private final class Box: @unchecked Sendable {
        var fields: NotificationFields
        /// The kinds of pushes for which the fields passed the checks: 1 for a push to a device, 2 for a broadcast.
        let passed = Atomic<UInt8>(0)
        init(_ fields: NotificationFields) { self.fields = fields }
    }

    private var box: Box

    var fields: NotificationFields {
        _read { yield box.fields }
        _modify {
            if isKnownUniquelyReferenced(&box) {
                box.passed.store(0, ordering: .relaxed)
            } else {
                box = Box(box.fields)
            }
            yield &box.fields
        }
    }

    /// Whether the notification passed the checks since it was changed, so that its raw payload need not be read again.
    func hasGoodPayload(isBroadcast: Bool) -> Bool {
        box.passed.load(ordering: .relaxed) & Self.bit(isBroadcast: isBroadcast) != 0
    }

    /// Notes that the notification passed the checks.
    func notePassed(isBroadcast: Bool) {
        box.passed.bitwiseOr(Self.bit(isBroadcast: isBroadcast), ordering: .relaxed)
    }

    private static func bit(isBroadcast: Bool) -> UInt8 { isBroadcast ? 2 : 1 }

    /// An empty notification of the given type: the way to types that the library has no factory for.
    public init(type: APNsPushType) { box = Box(NotificationFields(type: type)) }

    /// The payload, byte for byte as it is sent.
    public var jsonString: String { String(decoding: fields.payload, as: UTF8.self) }
}

extension APNsNotification {
    /// Shows an alert.
    public static func alert(title: String? = nil, subtitle: String? = nil, body: String? = nil) -> Self {
        var notification = APNsNotification(type: .alert)
        notification.fields.alert.title = title.map(AlertText.plain)
        notification.fields.alert.subtitle = subtitle.map(AlertText.plain)
        notification.fields.alert.body = body.map(AlertText.plain)
        return notification
    }

    /// Shows an alert of one text: `alert` is a string in the payload instead of a dictionary.
    public static func alert(_ text: String) -> Self {
        var notification = APNsNotification(type: .alert)
        notification.fields.plainAlert = text
        return notification
    }

    /// Wakes the app in the background, with `content-available` set and priority 5.
    public static var background: Self { APNsNotification(type: .background).contentAvailable() }

    /// Announces a call; the app reads what it needs from custom keys.
    public static var voip: Self { APNsNotification(type: .voip) }

    /// Tells a Push to Talk app of a change in its channel.
    public static var pushToTalk: Self { APNsNotification(type: .pushToTalk) }

    /// Brings new data to a complication, in custom keys.
    public static var complication: Self { APNsNotification(type: .complication) }

    /// Tells a File Provider extension that something changed in a container.
    /// - Parameters:
    ///   - container: an item identifier of the extension; `NSFileProviderWorkingSetContainerItemIdentifier` is usual.
    ///   - domain: the domain's identifier, where the extension has more than one.
    public static func fileProvider(container: String, domain: String? = nil) -> Self {
        let notification = APNsNotification(type: .fileProvider).custom("container-identifier", container)
        guard let domain else { return notification }
        return notification.custom("domain", domain)
    }

    /// Asks for the device's location.
    public static var location: Self { APNsNotification(type: .location) }

    /// Reloads the controls of an app.
    public static var controls: Self {
        var notification = APNsNotification(type: .controls)
        notification.fields.isContentChanged = true
        return notification
    }

    /// Reloads the widgets of an app.
    public static var widgets: Self {
        var notification = APNsNotification(type: .widgets)
        notification.fields.isContentChanged = true
        return notification
    }

    /// Carries an encrypted message to an accessory.
    public static func accessory(
        encryptedData: String, sessionIdentifier: String, keyID: String, messageIndex: String
    ) -> Self {
        var notification = APNsNotification(type: .accessory)
        notification.fields.accessory = NotificationFields.AccessoryFields(
            encryptedData: encryptedData, sessionIdentifier: sessionIdentifier, keyID: keyID, messageIndex: messageIndex)
        return notification
    }

    /// Asks a managed device to contact its server.
    /// - Parameters:
    ///   - pushMagic: the text that the device gave when it enrolled.
    ///   - topic: the UID in the subject of the push certificate.
    public static func mdm(pushMagic: String, topic: String) -> Self {
        var notification = APNsNotification(type: .mdm).topic(topic)
        notification.fields.pushMagic = pushMagic
        return notification
    }

    /// A payload that is sent as it is, if it keeps to the rules of its push type: see <doc:Checks>. A type that the library has
    /// no name for has no rules. Methods that set content cannot be combined with it: sending throws.
    public static func raw(_ payload: some Sequence<UInt8>, type: APNsPushType) -> Self {
        var notification = APNsNotification(type: type)
        notification.fields.raw = Array(payload)
        return notification
    }
}
