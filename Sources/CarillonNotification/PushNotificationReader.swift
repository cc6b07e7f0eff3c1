import CarillonBasics
import CarillonMessages
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Reads the real message out of a notification that Carillon's server sent through Apple, in a notification service extension.
///
/// The server sends an encrypted message with its alert when it fits. The extension opens it with the keys that the app left in a
/// folder that both share, and shows what it says instead of the text that Apple was sent. Whatever goes wrong, there is no
/// message, and the configured text is shown.
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

    /// Does no I/O.
    /// - Parameter sharedDirectory: the directory that the app's `PushClient.Configuration.sharedDirectory` names, in a container
    ///   of the app group.
    public init(sharedDirectory: String) { folder = SharedFolder(path: sharedDirectory) }

    /// The message of a notification; nil when there is none in it, or it cannot be opened: the keys are missing, belong to a
    /// channel that was opened anew since, or cannot be read as the phone is locked.
    /// - Parameter userInfo: the notification's payload.
    public func message(in userInfo: [AnyHashable: Any]) -> PushNotificationMessage? {
        guard let fields = userInfo["carillon"] as? [String: Any] else { return nil }
        return message(
            fields["message"] as? String, fields["channel"] as? String, fields["body"] as? String,
            fields["coding"] as? String,
            fields["encryption"] as? String, fields["cryptoKey"] as? String)
    }

    /// The message of a notification whose payload is JSON.
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

    /// What a subscription on items shows whose format is private; nil when there is none in it, or it cannot be opened.
    /// - Parameter userInfo: the notification's payload.
    public func privateNotification(in userInfo: [AnyHashable: Any]) -> PrivateNotification? {
        guard let fields = userInfo["carillon"] as? [String: Any], fields["kind"] as? String == "fired" else { return nil }
        return privateNotification(fields["message"] as? String, fields["body"] as? String, fields["coding"] as? String)
    }

    /// The same of a payload that is JSON.
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

    /// Remembers that the user saw it.
    /// - Returns: whether it could be written down.
    @discardableResult
    public func noteShown(_ notification: PrivateNotification) -> Bool { note(notification.hash) }

    /// Remembers that the user saw the message, so that the app, which gets it as well, need not show it again: there
    /// `PushMessage.wasPresented` is true.
    /// - Returns: whether it could be written down.
    @discardableResult
    public func noteShown(_ message: PushNotificationMessage) -> Bool { note(message.hash) }

    /// The same of a notification that was shown with the configured text.
    /// - Parameter userInfo: the notification's payload.
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

/// A message as its sender wrote it.
public struct PushNotificationMessage: Hashable, Sendable {
    let hash: String
    /// The server's name for the channel, as `PushChannel` does not show it; the same for all messages of one opening.
    public let channelID: String
    /// The bytes that the sender wrote.
    public let body: [UInt8]

    /// The body as text; nil when it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }
}
