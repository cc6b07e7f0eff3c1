import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// This installation of the app at Apple's push service and at the server: its push token, and whether the server sends pushes to
/// it.
///
/// Each ``PushClient`` has one: ``PushClient/device``. Set the token each time that the system passes one to the app. The client
/// sends it to the server until the server accepts it, and once in each run. The state that the server reported last is kept
/// while there is no connection.
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

    // MARK: Reports

    /// Sets the push token that the system passed to the app.
    ///
    /// When this returns, the token is durable. It is sent to the server now, or at the next connection. The device keeps its
    /// ``deviceID`` and its registrations. The same token again changes nothing.
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

    /// Sets the push token as the bytes that the system passed to the app.
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

    /// Sets the description of this installation that the server has beside its token. It replaces the former description: values
    /// that are left out are cleared.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``.
    public func setDetails(_ details: PushDeviceDetails) async throws(PushError) {
        try await runner.perform { session, context in session.pushDetailsSet(details, at: context.now) }
    }

    /// Sets the user of this device.
    ///
    /// When this returns, the change is durable. It is sent to the server now, or at the next connection, before any channel is
    /// opened. Then ``PushDeviceEvent/userTaken`` or ``PushDeviceEvent/userRefused(_:)`` is reported. Channels that were opened
    /// for the former user fail with the code 203, and their waiting messages are removed here and on the server. The device has
    /// no user after ``PushClient/signOut()``, and when the server lost the device. When the server accepted a change of the
    /// user, the client closes its connection and opens a new one, on which it receives no data of the former user.
    /// - Parameter token: The JWT that the app's own server signed for this app, with `sub`, `aud` and `exp`; nil signs the user
    ///   out.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; nothing has changed then.
    public func setUser(_ token: String?) async throws(PushError) {
        let userChange: UserChange = token.map { .signedIn($0) } ?? .signedOut
        try await runner.perform { session, context in session.userSet(userChange, at: context.now) }
    }

    /// Whether the server has not yet answered the last ``setUser(_:)``.
    public var isUserPending: Bool { runner.session.user.pending != nil }

    /// Resets the server's count for the number on the app's icon: the next alert that is counted shows 1.
    ///
    /// ``PushDeviceEvent/badgeReset`` or ``PushDeviceEvent/badgeResetFailed(_:)`` is reported as well.
    /// - Throws: ``PushError`` when the server could not be notified.
    public func resetBadge() async throws(PushError) {
        do throws(PushError) {
            guard let identity = runner.session.registration.identity else {
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

    // MARK: State

    /// The token that the app set last, as lower-case hexadecimal digits; nil before the first.
    public var token: String? { runner.session.device.token }

    /// The last token that the server accepted, if it is not ``token``; nil otherwise. It is replaced when the server has
    /// accepted the new one.
    public var previousToken: String? {
        let device = runner.session.device
        return device.acceptedToken == device.token ? nil : device.acceptedToken
    }

    /// The description that the app set last.
    public var details: PushDeviceDetails { runner.session.device.details }

    /// The status that the server reported last. It is kept without a connection, and after the end of the process.
    public var status: PushDeviceStatus { runner.session.device.status }

    /// When the status began, by the server's clock; nil while the status is unknown.
    public var statusTimestamp: Date? {
        runner.session.device.statusAt.map { Date(timeIntervalSince1970: TimeInterval($0) / 1000) }
    }

    /// The permanent device ID on the server; nil exactly while the status is unknown.
    public var deviceID: String? { status == .unknown ? nil : runner.session.registration.identity?.device }

    /// Whether the status is registered. Unlike in Lightstreamer's client, it stays so without a connection.
    public var isRegistered: Bool { status == .registered }

    /// Whether the status is suspended. Unlike in Lightstreamer's client, it stays so without a connection.
    public var isSuspended: Bool { status.isSuspended }

    // MARK: Subscriptions

    /// The device's subscriptions on items, whose conditions the server evaluates. After the first use of this property, the
    /// client requests them from the server, and reports ``PushDeviceEvent/subscriptionsUpdated`` each time that all are known.
    public var subscriptions: NotificationSubscriptions {
        runner.subscriptions.requested()
        return runner.subscriptions
    }

    /// The firings of subscriptions while the device is connected, with ``PushClient/Configuration/receivesFirings``. Up to 1,000
    /// firings and 8 MiB wait for the app or are being handled by it; see ``SubscriptionFirings``.
    public var firings: SubscriptionFirings { SubscriptionFirings(queue: runner.firings) }

    // MARK: Events

    /// The events of the device from now on. Any number of iterations can run at once. Each receives all events since it began.
    /// For a slow iteration the newest 100 events wait, after ``PushDeviceEvent/missed(_:)`` if older ones were dropped.
    public var events: PushDeviceEvents { PushDeviceEvents(listeners: listeners) }

    /// Adds a delegate for the events of the device. The delegate is referenced weakly. If it was added already, nothing changes.
    public func addDelegate(_ delegate: any PushDeviceDelegate) {
        listeners.add(delegate, to: self)
        runner.subscriptions.requested()
    }

    /// Removes a delegate. If it was not added, nothing changes.
    public func removeDelegate(_ delegate: any PushDeviceDelegate) { listeners.remove(delegate, from: self) }

    /// The delegates that still exist, in the order in which they were added.
    public var delegates: [any PushDeviceDelegate] { listeners.delegates }
}
