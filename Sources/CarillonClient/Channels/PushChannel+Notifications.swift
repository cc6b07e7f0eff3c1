public import Foundation

extension PushChannel {
    /// Posts each event of the channel as a notification, until the client stops or the task is cancelled. It is for code that
    /// uses the notifications of BlackBerry Dynamics: each of their constants has a name or key here.
    ///
    /// The notification's object is the channel. A message counts as handled when its observers have returned; they run before
    /// the post returns. The method iterates over ``events``, and one iteration can run at a time.
    /// - Throws: ``PushError`` as the iteration does.
    public func postEvents(to center: NotificationCenter = .default) async throws(PushError) {
        var events = events.makeAsyncIterator()
        while let event = try await events.next() {
            if let notification = notification(of: event) { center.post(notification) }
        }
    }

    private func notification(of event: PushChannelEvent) -> Notification? {
        switch event {
        case .opened(let token, let host):
            note(.pushChannelOpened, [.pushChannelTokenKey: token, .pushChannelHostKey: host])
        case .closed(let token):
            note(.pushChannelClosed, [.pushChannelTokenKey: token])
        case .error(let code):
            note(.pushChannelError, [.pushChannelErrorKey: code])
        case .message(let message):
            note(
                .pushChannelMessage,
                [
                    .pushChannelMessageKey: String(decoding: message.body, as: UTF8.self),
                    .pushChannelMessageBytesKey: Data(message.body),
                ])
        case .pingFailed(let failure):
            note(.pushChannelPingFailed, [.pushChannelErrorKey: failure.code])
        case .recovered:
            note(.pushChannelRecovered, [:])
        case .other(let other) where other.missedCount != nil:
            note(.pushChannelEventsMissed, [.pushChannelMissedCountKey: other.missedCount ?? 0])
        case .other(.moved):
            note(.pushChannelMoved, [.pushChannelTokenKey: token ?? "", .pushChannelHostKey: host ?? ""])
        case .other(let other):
            other.crashedMessage.map { note(.pushChannelMessageCrashed, [.pushChannelMessageIDKey: $0]) }
        }
    }

    private func note(_ name: Notification.Name, _ userInfo: [String: Any]) -> Notification {
        Notification(name: name, object: self, userInfo: userInfo)
    }
}

extension Notification.Name {
    /// The channel opened; the keys are ``Swift/String/pushChannelTokenKey`` and ``Swift/String/pushChannelHostKey``.
    public static let pushChannelOpened = Notification.Name("CarillonPushChannelOpened")
    /// The channel closed for good; the key is ``Swift/String/pushChannelTokenKey``.
    public static let pushChannelClosed = Notification.Name("CarillonPushChannelClosed")
    /// The channel failed for good; the key is ``Swift/String/pushChannelErrorKey``.
    public static let pushChannelError = Notification.Name("CarillonPushChannelError")
    /// A message arrived; the keys are ``Swift/String/pushChannelMessageKey`` and ``Swift/String/pushChannelMessageBytesKey``.
    public static let pushChannelMessage = Notification.Name("CarillonPushChannelMessage")
    /// The server could not ping the backend; the key is ``Swift/String/pushChannelErrorKey``, with a code of
    /// ``PushChannelEvent/PingFailure``.
    public static let pushChannelPingFailed = Notification.Name("CarillonPushChannelPingFailed")
    /// The backend answers again. BlackBerry's runtime had no such notification.
    public static let pushChannelRecovered = Notification.Name("CarillonPushChannelRecovered")
    /// Changes of the channel were dropped, because observers did not return in time; the key is
    /// ``Swift/String/pushChannelMissedCountKey``. BlackBerry's runtime had no such notification.
    public static let pushChannelEventsMissed = Notification.Name("CarillonPushChannelEventsMissed")
    /// The server has another address; the keys are ``Swift/String/pushChannelTokenKey`` and
    /// ``Swift/String/pushChannelHostKey``. BlackBerry's runtime had no such notification.
    public static let pushChannelMoved = Notification.Name("CarillonPushChannelMoved")
    /// The process ended ten times while the app handled a message, which is not delivered again; the key is
    /// ``Swift/String/pushChannelMessageIDKey``. BlackBerry's runtime had no such notification.
    public static let pushChannelMessageCrashed = Notification.Name("CarillonPushChannelMessageCrashed")
}

extension String {
    /// The key of the channel's token, a `String`.
    public static let pushChannelTokenKey = "CarillonPushChannelToken"
    /// The key of the number of changes that were dropped, an `Int`.
    public static let pushChannelMissedCountKey = "CarillonPushChannelMissedCount"
    /// The key of the push service's host name, a `String`.
    public static let pushChannelHostKey = "CarillonPushChannelHost"
    /// The key of the message as text, a `String`. Bytes that are not UTF-8 are replaced.
    public static let pushChannelMessageKey = "CarillonPushChannelMessage"
    /// The key of the message as it was sent, a `Data`.
    public static let pushChannelMessageBytesKey = "CarillonPushChannelMessageBytes"
    /// The key of the id of a message, a `String`.
    public static let pushChannelMessageIDKey = "CarillonPushChannelMessageID"
    /// The key of the error code, an `Int`.
    public static let pushChannelErrorKey = "CarillonPushChannelError"
}
