package import CarillonAPNs

/// The settings of the vendors' push services.
package struct GatewaySettings: Sendable {
    /// The addresses of Apple's services. Other hosts are relays or simulators.
    package var production: APNsEnvironment = .production
    package var sandbox: APNsEnvironment = .sandbox
    /// The certificate authorities that are trusted instead of the system's, in PEM.
    package var authorities: String?
    package var proxy: APNsClient.Proxy?
    /// The longest duration of a push from its start until the answer. Less than ``LeasedPush/leaseSeconds``.
    package var timeout: Duration = .seconds(30)
    /// The largest number of pushes without an answer.
    package var underWay = 4000

    package init() {}
}
