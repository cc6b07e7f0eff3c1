package import CarillonWire

/// The pushes of one app through one environment of a gateway. They share push credentials, and the queue pauses after a fault of
/// its push credentials.
package struct PushQueue: Hashable, Sendable {
    package var app: AppSerial
    package var environment: PushEnvironment

    package init(app: AppSerial, environment: PushEnvironment) {
        self.app = app
        self.environment = environment
    }

    /// The number in the store.
    package var number: Int64 { app.rawValue << 2 | environment.number }

    /// Returns nil if no push queue has the number.
    package init?(number: Int64) {
        guard let environment = PushEnvironment.allCases.first(where: { $0.number == number & 3 }) else { return nil }
        self.init(app: AppSerial(number >> 2), environment: environment)
    }

    /// The push queue of the environment that can accept a token which this push queue does not accept.
    package var other: PushQueue? {
        switch environment {
        case .production: PushQueue(app: app, environment: .sandbox)
        case .sandbox: PushQueue(app: app, environment: .production)
        case .test: nil
        }
    }
}

extension PushEnvironment {
    fileprivate var number: Int64 {
        switch self {
        case .production: 0
        case .sandbox: 1
        case .test: 2
        }
    }
}
