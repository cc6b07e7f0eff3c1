import Synchronization

/// A notification: its content, its custom keys, and its delivery options.
///
/// Start with the factory for the kind of push, and chain the methods that it needs. Each method returns a changed copy, so a
/// notification can be stored and varied.
///
/// ```swift
/// let notification = APNsNotification.alert(title: "Kettle", body: "The water boils.")
///     .sound("default")
///     .badge(1)
///     .custom("kettle", 7)
/// ```
///
/// The methods check nothing. Before anything is sent, ``APNsClient`` rejects content that APNs would reject or that the
/// device would ignore, and names the method or the member: see <doc:Checks>. ``withoutChecks()`` turns these checks off.
/// ``jsonString`` is the payload as it is sent.
public struct APNsNotification: Sendable {
    /// Stores the fields once for all copies, because the fields are many and a notification is copied often. The fields are
    /// copied when a notification that shares them is changed.
    ///
    /// `@unchecked Sendable`: only `APNsNotification.fields` writes `fields`, and only when `isKnownUniquelyReferenced`
    /// reports that no other notification refers to the box. The other property is atomic.
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

    /// Whether the notification passed the checks since its last change, so that its raw payload need not be read again.
    func hasGoodPayload(isBroadcast: Bool) -> Bool {
        box.passed.load(ordering: .relaxed) & Self.bit(isBroadcast: isBroadcast) != 0
    }

    /// Records that the notification passed the checks.
    func notePassed(isBroadcast: Bool) {
        box.passed.bitwiseOr(Self.bit(isBroadcast: isBroadcast), ordering: .relaxed)
    }

    private static func bit(isBroadcast: Bool) -> UInt8 { isBroadcast ? 2 : 1 }

    /// Makes an empty notification of the given type. Use it for types that the library has no factory for.
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

    /// Shows an alert with one text: `alert` is a string in the payload instead of a dictionary.
    public static func alert(_ text: String) -> Self {
        var notification = APNsNotification(type: .alert)
        notification.fields.plainAlert = text
        return notification
    }

    /// Wakes the app in the background, with `content-available` set and priority 5.
    public static var background: Self { APNsNotification(type: .background).contentAvailable() }

    /// Announces a call. The app reads the details from custom keys.
    public static var voip: Self { APNsNotification(type: .voip) }

    /// Notifies a Push to Talk app of a change in its channel.
    public static var pushToTalk: Self { APNsNotification(type: .pushToTalk) }

    /// Sends new data to a complication, in custom keys.
    public static var complication: Self { APNsNotification(type: .complication) }

    /// Notifies a File Provider extension of changes in a container.
    /// - Parameters:
    ///   - container: an item identifier of the extension; `NSFileProviderWorkingSetContainerItemIdentifier` is usual.
    ///   - domain: the identifier of the domain, if the extension has more than one.
    public static func fileProvider(container: String, domain: String? = nil) -> Self {
        let notification = APNsNotification(type: .fileProvider).custom("container-identifier", container)
        guard let domain else { return notification }
        return notification.custom("domain", domain)
    }

    /// Requests the device's location.
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

    /// Sends an encrypted message to an accessory.
    public static func accessory(
        encryptedData: String, sessionIdentifier: String, keyID: String, messageIndex: String
    ) -> Self {
        var notification = APNsNotification(type: .accessory)
        notification.fields.accessory = NotificationFields.AccessoryFields(
            encryptedData: encryptedData, sessionIdentifier: sessionIdentifier, keyID: keyID, messageIndex: messageIndex)
        return notification
    }

    /// Requests that a managed device contacts its server.
    /// - Parameters:
    ///   - pushMagic: the text that the device sent when it enrolled.
    ///   - topic: the UID in the subject of the push certificate.
    public static func mdm(pushMagic: String, topic: String) -> Self {
        var notification = APNsNotification(type: .mdm).topic(topic)
        notification.fields.pushMagic = pushMagic
        return notification
    }

    /// Sends a payload unchanged, if it follows the rules of its push type: see <doc:Checks>. A type that the library has no
    /// name for has no rules. If a method that sets content is called as well, sending throws.
    public static func raw(_ payload: some Sequence<UInt8>, type: APNsPushType) -> Self {
        var notification = APNsNotification(type: type)
        notification.fields.raw = Array(payload)
        return notification
    }
}
