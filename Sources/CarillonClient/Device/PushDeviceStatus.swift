/// Whether this installation is registered at the server, and receives pushes through Apple's push service.
public enum PushDeviceStatus: Hashable, Sendable {
    /// The server has not accepted a push token yet, or rejected it, or the device was signed out.
    case unknown
    /// The server sends pushes to the device while the app is not running.
    case registered
    /// The server sends no pushes to the device through Apple's push service. Messages on a live connection and polls continue.
    case suspended(PushDeviceSuspension)

    /// Whether the device is suspended, for any reason.
    public var isSuspended: Bool { if case .suspended = self { true } else { false } }
}

/// Why a device is suspended. Later versions can add reasons.
public struct PushDeviceSuspension: RawRepresentable, Hashable, Sendable {
    /// The name of the reason in the protocol.
    public let rawValue: String

    /// Makes a reason from its name in the protocol.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Another installation registered with the same push token. Ends when this one registers a token again.
    public static let tokenTaken = PushDeviceSuspension(rawValue: "token_taken")
    /// Apple's push service reports that the token is invalid. Ends when the device registers a token again.
    public static let tokenDead = PushDeviceSuspension(rawValue: "token_dead")
    /// An operator of the server suspended the device. Only an operator can resume it.
    public static let byOperator = PushDeviceSuspension(rawValue: "operator")
}

/// An event of a ``PushDevice``.
///
/// Later versions of the library can add cases: keep a `default` in a `switch` over an event.
public enum PushDeviceEvent: Sendable {
    /// The number of events that were dropped because the iteration did not take them in time. It comes before the events that
    /// wait. ``PushDevice/status`` and ``PushDevice/subscriptions`` have the present state.
    case missed(_ count: Int)
    /// The status changed. It comes before the event with the reason.
    case statusChanged(PushDeviceStatus)
    /// The server accepted the token. It can come again, because the token is sent once in each run of the app.
    case registered
    /// The device was suspended.
    case suspended(PushDeviceSuspension)
    /// The device is not suspended any more.
    case resumed
    /// The server rejected the token or the description of the device. The status becomes unknown after this.
    case registrationFailed(PushError)
    /// The server accepted the user that the app set.
    case userTaken
    /// The server rejected the user that the app set. The device keeps its former user.
    case userRefused(PushError)
    /// The device's subscriptions are known; a device can have no subscription. It is reported after each connection, once the app used
    /// ``PushDevice/subscriptions`` or added a delegate.
    case subscriptionsUpdated
    /// The server's count for the number on the app's icon was reset.
    case badgeReset
    /// The server could not be requested to reset the count.
    case badgeResetFailed(PushError)
    /// The process ended ten times while the app handled a firing: in the loop over ``PushDevice/firings``, or in a delegate of the
    /// subscription. The app does not receive the firing again, and the server receives the code 301, handler failed.
    case firingCrashed(SubscriptionFiring)
    /// The client's storage begins to fail, because its disk is full or cannot be used. It is reported once. The client repeats
    /// the failed writes by itself, after up to 60 seconds.
    case storageFailed(PushError)
    /// The client's storage works again.
    case storageRecovered
}

extension PushDeviceEvent: Equatable {
    /// Errors are equal when their codes and messages are.
    public static func == (left: PushDeviceEvent, right: PushDeviceEvent) -> Bool {
        switch (left, right) {
        case (.missed(let one), .missed(let other)): one == other
        case (.statusChanged(let one), .statusChanged(let other)): one == other
        case (.registered, .registered), (.resumed, .resumed), (.badgeReset, .badgeReset), (.userTaken, .userTaken),
            (.subscriptionsUpdated, .subscriptionsUpdated), (.storageRecovered, .storageRecovered):
            true
        case (.suspended(let one), .suspended(let other)): one == other
        case (.firingCrashed(let one), .firingCrashed(let other)): one == other
        case (.registrationFailed(let one), .registrationFailed(let other)),
            (.badgeResetFailed(let one), .badgeResetFailed(let other)), (.userRefused(let one), .userRefused(let other)),
            (.storageFailed(let one), .storageFailed(let other)):
            one.code == other.code && one.message == other.message
        default: false
        }
    }
}

/// The description of this installation that the server has beside its push token. Senders can select devices by it.
public struct PushDeviceDetails: Hashable, Sendable {
    /// The environment of Apple's push service to which the token belongs.
    public enum Environment: String, Hashable, Sendable, CaseIterable {
        /// Apps from the App Store and TestFlight.
        case production
        /// Apps that were built for development.
        case sandbox
        /// No environment of Apple's: the server records the pushes that it would have sent.
        case test
    }

    /// The value of a parameter.
    public enum Parameter: Hashable, Sendable {
        /// A text.
        case text(String)
        /// A whole number.
        case integer(Int)
        /// A number; not infinite, and not "not a number".
        case number(Double)
        /// True or false.
        case flag(Bool)
        /// Several texts.
        case texts([String])
    }

    /// The environment of Apple's push service to which the token belongs.
    public var environment: Environment
    /// The app's version, up to 64 characters of ASCII.
    public var appVersion: String?
    /// The user's language and region, such as `de-AT`.
    public var locale: String?
    /// The name of the time zone, such as `Europe/Vienna`.
    public var timeZone: String?
    /// Values by names that the app chooses: letters, digits and underscores.
    public var parameters: [String: Parameter]

    /// Makes a description. Without arguments it is empty, and the environment is production.
    public init(
        environment: Environment = .production, appVersion: String? = nil, locale: String? = nil, timeZone: String? = nil,
        parameters: [String: Parameter] = [:]
    ) {
        self.environment = environment
        self.appVersion = appVersion
        self.locale = locale
        self.timeZone = timeZone
        self.parameters = parameters
    }
}
