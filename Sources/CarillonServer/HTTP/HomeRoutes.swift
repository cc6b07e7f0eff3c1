import CarillonCore
import Hummingbird
import Logging

/// The routes of each home of a process, and the handlers of requests that arrive without a connection.
final class HomeRoutes: Sendable {
    /// Answers the requests of connections, each at its home.
    let responder: any HTTPResponder<RouteContext>
    /// Answers requests at the first home.
    let local: any HTTPResponder<RouteContext>
    /// A home refers to its handler weakly.
    private let handlers: [HomeRequestHandler]

    /// - Parameters:
    ///   - homes: At least one.
    ///   - quotas: The connections of devices, which are counted at their homes.
    ///   - make: Returns the routes of a home.
    init(
        of homes: [HomeDomain], addresses: PublicAddresses, quotas: ConnectionQuotas, clientAddress: ClientAddress,
        logger: Logger,
        _ make: (HomeDomain) -> Routes
    ) {
        let routes = homes.map(make)
        let responders = routes.map { $0.router().buildResponder() }
        let domain = homes[0]
        local = responders[0]
        guard homes.count > 1 else {
            (responder, handlers) = (local, [])
            return
        }
        responder = RequestForwarder(
            domain: domain.shared, homes: domain.homes, routes: routes[0], local: local, clientAddress: clientAddress)
        handlers = zip(homes, responders).map { home, responder in
            HomeRequestHandler(
                domain: home, responder: responder,
                publishHandler: PublishHandler(domain: home, addresses: addresses, logger: logger), quotas: quotas,
                logger: logger)
        }
        for (home, handler) in zip(homes, handlers) {
            home.runtime.take {
                [weak handler] (request: HomeRequest, pass: ShardPass?) async throws(HomeFault) -> HomeResponse in
                guard let handler else { throw .unreachable }
                return try await handler.handle(request, pass)
            }
        }
    }
}
