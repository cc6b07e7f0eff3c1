package import CarillonAPNs

/// What an operator can set about vendors' services.
package struct GatewaySettings: Sendable {
    /// Where Apple's services are; other hosts are relays or simulators.
    package var production: APNsEnvironment = .production
    package var sandbox: APNsEnvironment = .sandbox
    /// PEM text of the authorities that are believed instead of the system's.
    package var authorities: String?
    package var proxy: APNsClient.Proxy?
    /// How long a push may take, from the beginning until the answer: less than ``LeasedPush/leaseSeconds``.
    package var timeout: Duration = .seconds(30)
    /// How many pushes may be under way.
    package var underWay = 4000

    package init() {}
}
