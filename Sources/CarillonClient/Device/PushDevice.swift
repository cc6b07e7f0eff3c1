import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// This install, as Apple's push service and the server know it: its push token, and whether it is pushed to.
///
/// There is one for each ``PushClient``: ``PushClient/device``. Give it the token each time that the system gives one to the app;
/// the client says it to the server, again and again until it is taken, and once in each run. What the server says stays
/// as it is while there is no connection.
///
/// ```swift
/// func application(_ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken token: Data) {
///     Task { try await client.device.setToken(token) }
/// }
/// ```
public final class PushDevice: Sendable {
    private let runner: SessionRunner
    private let registrar: ClientRegistrar
    let listeners: PushDeviceListeners

    /// The app's name on the server, as the client was configured.
    public let applicationID: String
    /// `apple`.
    public let platform = PushPlatform.apple.rawValue

    init(runner: SessionRunner, registrar: ClientRegistrar) {
        self.runner = runner
        self.registrar = registrar
        listeners = runner.deviceListeners
        applicationID = registrar.app
    }

    // MARK: Saying

    /// Says the push token that the system gave the app.
    ///
    /// When this returns, the token is durable; the server hears of it now, or at the next connection. What was registered
    /// before moves with the device: it keeps its ``deviceID``. The same token again changes nothing.
    /// - Parameter hexadecimal: Digits of either case, without spaces or brackets.
    /// - Throws: ``PushError`` with ``PushError/Code/tokenInvalid``, or with ``PushError/Code/storageUnavailable``; nothing has
    ///   changed then.
    public func setToken(_ hexadecimal: String) async throws(PushError) {
        let token: PushToken
        do {
            token = try PushToken(hexadecimal: hexadecimal)
        } catch {
            throw PushError(.tokenInvalid, error.detail)
        }
        try await set(token)
    }

    /// Says the push token as the system gave it.
    /// - Throws: As ``setToken(_:)-(String)``.
    public func setToken(_ bytes: Data) async throws(PushError) {
        guard let token = PushToken(stored: Array(bytes)) else {
            throw PushError(.tokenInvalid, "A push token has 1 to \(PushToken.longestBytes) bytes, not \(bytes.count).")
        }
        try await set(token)
    }

    private func set(_ token: PushToken) async throws(PushError) {
        try await runner.perform { session, context in session.pushTokenSet(token.hexadecimal, at: context.now) }
    }

    /// Says what the server is to know of this install beside its token; what was said before and is not said now is so no more.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``.
    public func setDetails(_ details: PushDeviceDetails) async throws(PushError) {
        try await runner.perform { session, context in session.pushDetailsSet(details, at: context.now) }
    }

    /// Says whose this device is from now on.
    ///
    /// When this returns, it is durable; the server hears of it now, or at the next connection, and no channel is opened before.
    /// ``PushDeviceEvent/userTaken`` or ``PushDeviceEvent/userRefused(_:)`` is reported then. Channels that were opened for the user before
    /// fail with the code 203: what waits in them is gone, here and on the server. After ``PushClient/signOut()``, and when the
    /// server lost the device, it has no user. When the server took another user than before, the client closes its connection and opens a new one,
    /// on which it receives nothing of the former user.
    /// - Parameter token: The JWT that the app's own server signed for this app, with `sub`, `aud` and `exp`; nil signs out.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; nothing has changed then.
    public func setUser(_ token: String?) async throws(PushError) {
        let claim: UserClaim = token.map { .signedIn($0) } ?? .signedOut
        try await runner.perform { session, context in session.userSet(claim, at: context.now) }
    }

    /// Whether the server did not answer yet to what ``setUser(_:)`` said last.
    public var isUserPending: Bool { runner.isUserPending }

    /// Has the server count the number on the app's icon from the beginning: the next alert that it counts says 1.
    ///
    /// ``PushDeviceEvent/badgeReset`` or ``PushDeviceEvent/badgeResetFailed(_:)`` is reported as well.
    /// - Throws: ``PushError`` when the server could not be notified.
    public func resetBadge() async throws(PushError) {
        do throws(PushError) {
            guard let identity = runner.identity else {
                throw PushError(.deviceUnknown, "The device is not registered; connect a channel first.")
            }
            do throws(PushError) {
                try await registrar.resetBadge(identity)
            } catch {
                guard error.serverCode == ErrorCode.credentialInvalid.rawValue,
                    runner.repeatsRegistration(afterRefusalOf: identity.credential)
                else { throw error }
                throw PushError(
                    .serverUnavailable,
                    "The server refused the device's credential; the registration is repeated. Try again later.",
                    cause: error)
            }
            listeners.notify([.badgeReset])
        } catch {
            if [.serverUnavailable, .serverUnreachable].contains(error.code) { runner.failures.note(error) }
            listeners.notify([.badgeResetFailed(error)])
            throw error
        }
    }

    // MARK: Looking

    /// The token that the app said last, as hexadecimal digits in small letters; nil before the first.
    public var token: String? { runner.device.token }

    /// The last token that the server took, when it is another than ``token``: what it moves from. It is replaced only when
    /// the server took the new one.
    public var previousToken: String? {
        let device = runner.device
        return device.takenToken == device.token ? nil : device.takenToken
    }

    /// What was said beside the token.
    public var details: PushDeviceDetails { runner.device.details }

    /// What the server said last. It survives a disconnection, and the end of the process.
    public var status: PushDeviceStatus { runner.device.status }

    /// Since when, by the server's clock; nil while the status is unknown.
    public var statusTimestamp: Date? {
        runner.device.statusAt.map { Date(timeIntervalSince1970: TimeInterval($0) / 1000) }
    }

    /// The server's permanent name for this device; nil exactly while the status is unknown.
    public var deviceID: String? { status == .unknown ? nil : runner.deviceID }

    /// Whether the status is registered. Other than in Lightstreamer's client, it stays so without a connection.
    public var isRegistered: Bool { status == .registered }

    /// Whether the status is suspended. Other than in Lightstreamer's client, it stays so without a connection.
    public var isSuspended: Bool { status.isSuspended }

    // MARK: Subscriptions

    /// The device's subscriptions on items, which the server watches for it. The client asks the server for them once this was used,
    /// and reports ``PushDeviceEvent/subscriptionsUpdated`` each time that it knows all.
    public var subscriptions: NotificationSubscriptions {
        runner.subscriptions.wanted()
        return runner.subscriptions
    }

    /// What fires while the device is connected, with ``PushClient/Configuration/receivesFirings``. Up to 1,000 firings and 8 MiB wait or are
    /// not received; see ``SubscriptionFirings``.
    public var firings: SubscriptionFirings { SubscriptionFirings(queue: runner.firings) }

    // MARK: Listening

    /// What happens to the device from now on. Any number of iterations may go on at once; each has all that happened since it
    /// began. For a slow one the newest 100 events wait, after ``PushDeviceEvent/missed(_:)`` where older ones were dropped.
    public var events: PushDeviceEvents { PushDeviceEvents(listeners: listeners) }

    /// Has a delegate called for what happens. It is kept weakly; one that is there already is not added again.
    public func addDelegate(_ delegate: any PushDeviceDelegate) {
        listeners.add(delegate, to: self)
        runner.subscriptions.wanted()
    }

    /// Has a delegate called no more. One that is not there is nothing.
    public func removeDelegate(_ delegate: any PushDeviceDelegate) { listeners.remove(delegate, from: self) }

    /// The delegates that live, in the order in which they were added.
    public var delegates: [any PushDeviceDelegate] { listeners.delegates }
}
