import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird

extension Routes {
    /// Returns all routes of the server.
    static func all(
        domain: HomeDomain, addresses: PublicAddresses, store: any ServerStore, settings: ServerSettings,
        readiness: Readiness,
        sockets: ConnectionLimit
    ) -> Routes {
        let routes = Routes(domain.answers, of: domain.server)
        SenderRoutes(domain: domain, addresses: addresses).add(to: routes)
        WatchRoutes(domain: domain).add(to: routes)
        GNPRoutes(domain: domain).add(to: routes)
        MatrixRoutes(domain: domain, addresses: addresses).add(to: routes)
        DeviceRoutes(domain: domain, addresses: addresses, clientAddress: settings.clientAddress).add(to: routes)
        InboxRoutes(domain: domain, settings: settings, readiness: readiness).add(to: routes)
        PollRoutes(domain: domain, readiness: readiness).add(to: routes)
        UpdateRoutes(domain: domain).add(to: routes)
        OperatorRoutes(domain: domain).add(to: routes)
        GatewayRoutes(domain: domain).add(to: routes)
        UserRoutes(domain: domain).add(to: routes)
        ApprovalHookRoutes(domain: domain).add(to: routes)
        ItemRoutes(domain: domain, logger: domain.logger).add(to: routes)
        SubscriptionRoutes(domain: domain, clientAddress: settings.clientAddress).add(to: routes)
        AttachmentRoutes(
            domain: domain, addresses: addresses, announcesResumption: settings.announcesUploadResumption
        ).add(to: routes)
        RealmRoutes(domain: domain).add(to: routes)
        ServiceRoutes(domain: domain, clientAddress: settings.clientAddress).add(to: routes)
        HealthRoutes(store: store, readiness: readiness, gateways: domain.gateways).add(to: routes)
        // Load balancers use this request as a health check.
        routes.on(.options, "/") { _, _ in Response(status: .noContent, headers: [.allow: "GET, HEAD, OPTIONS"]) }
        routes.on(.get, "/") { _, _ in
            guard sockets.admits() else {
                throw Refusal(
                    .overloaded, "The server has reached its limit of sockets; retry later.", retryAfterSeconds: 10)
            }
            throw Refusal(.upgradeRequired, "Connect with a WebSocket handshake (RFC 6455, version 13).")
        }
        return routes
    }
}
