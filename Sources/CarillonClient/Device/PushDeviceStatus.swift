/// Whether this install is known to the server, and pushed to through Apple's push service.
public enum PushDeviceStatus: Hashable, Sendable {
    /// The server did not take a push token yet, or refused it, or the device was signed out.
    case unknown
    /// The server pushes to the device while the app sleeps.
    case registered
    /// The server does not push to the device through Apple's push service. Live messages and polls go on.
    case suspended(PushDeviceSuspension)

    /// Whether the device is suspended, for whatever reason.
    public var isSuspended: Bool { if case .suspended = self { true } else { false } }
}

/// Why a device is suspended. More reasons may come.
public struct PushDeviceSuspension: RawRepresentable, Hashable, Sendable {
    /// As the server writes it.
    public let rawValue: String

    /// A reason as the server writes it.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Another install registered with the same push token. Ends when this one registers a token again.
    public static let tokenTaken = PushDeviceSuspension(rawValue: "token_taken")
    /// Apple's push service says that the token leads nowhere. Ends when the device registers a token again.
    public static let tokenDead = PushDeviceSuspension(rawValue: "token_dead")
    /// An operator of the server suspended the device, and alone resumes it.
    public static let byOperator = PushDeviceSuspension(rawValue: "operator")
}

/// Something that happened to a ``PushDevice``.
///
/// Later versions of the library can add cases: keep a `default` in a `switch` over an event.
public enum PushDeviceEvent: Sendable {
    /// Events were dropped, as the iteration did not take them in time; how many. It comes before the events that wait.
    /// ``PushDevice/status`` and ``PushDevice/subscriptions`` have the present state.
    case missed(_ count: Int)
    /// The status is another than before. It comes before the event that says why.
    case statusChanged(PushDeviceStatus)
    /// The server took the token. It may come again: the token is said once in each run of the app.
    case registered
    /// The device was suspended.
    case suspended(PushDeviceSuspension)
    /// The device is not suspended any more.
    case resumed
    /// The server refused the token or what stands beside it. The status becomes unknown after this.
    case registrationFailed(PushError)
    /// The server took what the app said of its user.
    case userTaken
    /// The server refused it; the device stays whose it was.
    case userRefused(PushError)
    /// The device's subscriptions are known, also when there are none: after each connection, once the app used
    /// ``PushDevice/subscriptions`` or added a delegate.
    case subscriptionsUpdated
    /// The number that the server counts for the app's icon begins anew.
    case badgeReset
    /// The server could not be notified to begin anew.
    case badgeResetFailed(PushError)
    /// The process ended ten times while the app handled a firing: in the loop over ``PushDevice/firings``, or in a delegate of the
    /// subscription. The app does not receive the firing again, and the server receives the code 301, handler failed.
    case firingCrashed(SubscriptionFiring)
    /// The client's storage begins to fail, as its disk is full or cannot be used. It is reported once; what could not be stored is tried again
    /// by itself, at the latest every 60 seconds.
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

/// What the server knows of this install beside its push token, for those who send to some devices and not to others.
public struct PushDeviceDetails: Hashable, Sendable {
    /// Which of Apple's services the token is of: the sandbox for apps that were built for development.
    public enum Environment: String, Hashable, Sendable, CaseIterable {
        /// Apps from the App Store and TestFlight.
        case production
        /// Apps that were built for development.
        case sandbox
        /// None: the server remembers what it would have pushed.
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

    /// Which of Apple's services the token is of.
    public var environment: Environment
    /// The app's version, up to 64 characters of ASCII.
    public var appVersion: String?
    /// The user's language and region, such as `de-AT`.
    public var locale: String?
    /// The name of the time zone, such as `Europe/Vienna`.
    public var timeZone: String?
    /// Values by names of the app's own: letters, digits and underscores.
    public var parameters: [String: Parameter]

    /// Makes details; without arguments there are none, and the environment is production.
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
