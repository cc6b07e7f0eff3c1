import CarillonBasics
import CarillonMessages
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Decrypts the message in a notification that Carillon's server sent through Apple's push service. Use it in a notification
/// service extension.
///
/// The server includes an encrypted message in its alert if the message fits. The extension decrypts it with the keys that
/// the app stored in a shared folder, and shows its text instead of the configured text. After any fault the reader returns
/// no message, and the system shows the configured text.
///
/// ```swift
/// let reader = PushNotificationReader(sharedDirectory: folder)
/// if let message = reader.message(in: request.content.userInfo), let text = message.text {
///     content.body = text
///     reader.noteShown(message)
/// }
/// ```
public struct PushNotificationReader: Sendable {
    private let folder: SharedFolder

    /// Makes a reader. This does no I/O.
    /// - Parameter sharedDirectory: the directory of the app's `PushClient.Configuration.sharedDirectory`, in a container of
    ///   the app group.
    public init(sharedDirectory: String) { folder = SharedFolder(path: sharedDirectory) }

    /// Returns the message of a notification. Returns nil if the notification contains no message, or if the message cannot
    /// be decrypted: the keys are missing, the channel was opened again with other keys, or the keys cannot be read because
    /// the phone is locked.
    /// - Parameter userInfo: the notification's payload.
    public func message(in userInfo: [AnyHashable: Any]) -> PushNotificationMessage? {
        guard let fields = userInfo["carillon"] as? [String: Any] else { return nil }
        return message(
            fields["message"] as? String, fields["channel"] as? String, fields["body"] as? String,
            fields["coding"] as? String,
            fields["encryption"] as? String, fields["cryptoKey"] as? String)
    }

    /// Returns the message of a notification whose payload is JSON, or nil as ``message(in:)`` does.
    /// - Parameter payload: the payload's bytes.
    public func message(inPayload payload: Data) -> PushNotificationMessage? {
        guard let fields = JSONValue(parsing: Array(payload))?["carillon"] else { return nil }
        func text(_ name: String) -> String? { if case .string(let text)? = fields[name] { text } else { nil } }
        return message(
            text("message"), text("channel"), text("body"), text("coding"), text("encryption"), text("cryptoKey"))
    }

    private func message(
        _ hash: String?, _ channel: String?, _ body: String?, _ coding: String?, _ encryption: String?, _ cryptoKey: String?
    ) -> PushNotificationMessage? {
        guard let hash, let channel = channel.flatMap({ ChannelID($0) }), let body = body.flatMap({ Base64URL.decode($0) }),
            let name = coding.flatMap(ContentCoding.Name.init), let keys = folder.keys(of: channel),
            let content = try? keys.decrypt(body, ContentCoding(name, encryption: encryption, cryptoKey: cryptoKey))
        else { return nil }
        return PushNotificationMessage(hash: hash, channelID: "\(channel)", body: content)
    }

    /// Returns the private notification of an item subscription, or nil if the payload contains none or it cannot be
    /// decrypted.
    /// - Parameter userInfo: the notification's payload.
    public func privateNotification(in userInfo: [AnyHashable: Any]) -> PrivateNotification? {
        guard let fields = userInfo["carillon"] as? [String: Any], fields["kind"] as? String == "fired" else { return nil }
        return privateNotification(fields["message"] as? String, fields["body"] as? String, fields["coding"] as? String)
    }

    /// Returns the private notification of an item subscription from a payload that is JSON, or nil as
    /// ``privateNotification(in:)`` does.
    /// - Parameter payload: the payload's bytes.
    public func privateNotification(inPayload payload: Data) -> PrivateNotification? {
        guard let fields = JSONValue(parsing: Array(payload))?["carillon"], fields["kind"] == .string("fired") else {
            return nil
        }
        func text(_ name: String) -> String? { if case .string(let text)? = fields[name] { text } else { nil } }
        return privateNotification(text("message"), text("body"), text("coding"))
    }

    private func privateNotification(_ hash: String?, _ body: String?, _ coding: String?) -> PrivateNotification? {
        guard let hash, let body = body.flatMap({ Base64URL.decode($0) }), coding == ContentCoding.Name.aes128gcm.rawValue,
            let content = try? folder.ownKeys()?.decrypt(body, ContentCoding(.aes128gcm)),
            let fired = JSONValue(parsing: content).flatMap(FiredNotification.init)
        else { return nil }
        return PrivateNotification(hash: hash, fired: fired)
    }

    /// Records that the extension showed the notification.
    /// - Returns: whether the record was written.
    @discardableResult
    public func noteShown(_ notification: PrivateNotification) -> Bool { note(notification.hash) }

    /// Records that the extension showed the message. The app receives the message as well, and does not need to show it
    /// again: `PushMessage.wasPresented` is then true.
    /// - Returns: whether the record was written.
    @discardableResult
    public func noteShown(_ message: PushNotificationMessage) -> Bool { note(message.hash) }

    /// Records that a notification was shown with the configured text.
    /// - Parameter userInfo: the notification's payload.
    /// - Returns: whether the record was written.
    @discardableResult
    public func noteShown(_ userInfo: [AnyHashable: Any]) -> Bool {
        guard let fields = userInfo["carillon"] as? [String: Any], let hash = fields["message"] as? String else {
            return false
        }
        return note(hash)
    }

    private func note(_ hash: String) -> Bool {
        do {
            try folder.noteShown(hash)
            return folder.wasShown(hash)
        } catch {
            return false
        }
    }
}

/// A decrypted message.
public struct PushNotificationMessage: Hashable, Sendable {
    let hash: String
    /// The server's ID of the channel. All messages have the same ID until the channel is opened again. `PushChannel` does
    /// not contain this ID.
    public let channelID: String
    /// The bytes that the sender encrypted.
    public let body: [UInt8]

    /// The body as text; nil if it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }
}
