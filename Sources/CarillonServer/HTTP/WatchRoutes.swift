import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird

/// The routes for a backend's watch on a channel token: a ping address, and a callback for the end of the channel.
struct WatchRoutes: Sendable {
    let domain: HomeDomain

    func add(to routes: Routes) {
        routes.on(.put, "/push/:token/watch", query: .ignored, put)
        routes.on(.get, "/push/:token/watch", query: .ignored, show)
        routes.on(.delete, "/push/:token/watch", query: .ignored, remove)
    }

    @Sendable private func put(_ request: Request, _ context: RouteContext) async throws -> Response {
        let token = try context.parameters.require("token")
        // An invalid token is refused before the body is read.
        _ = try await domain.publisher.channel(of: token)
        let put = try await domain.watches.put(
            try await request.decode(PutWatch.self), token: token, vapid: try vapid(request))
        return Response(status: put.isNew ? .created : .ok, json: WatchBody(put.watch, secret: put.secret))
    }

    @Sendable private func show(_ request: Request, _ context: RouteContext) async throws -> Response {
        let watch = try await domain.watches.show(
            token: try context.parameters.require("token"), vapid: try vapid(request))
        return Response(status: .ok, json: WatchBody(watch, secret: nil))
    }

    @Sendable private func remove(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await domain.watches.remove(token: try context.parameters.require("token"), vapid: try vapid(request))
        return Response(status: .noContent)
    }

    private func vapid(_ request: Request) throws -> VapidCredentials? {
        try VapidCredentials(authorization: request.headers[.authorization], cryptoKey: request.headers[.cryptoKey])
    }
}

extension WatchBody {
    init(_ watch: Watch, secret: SigningSecret?) {
        self.init(
            pingAddress: watch.ping?.address.text, pingIntervalSeconds: watch.ping?.intervalSeconds,
            disconnectAddress: watch.disconnectAddress?.text,
            createdAt: Timestamp3339.text(watch.createdAt.milliseconds),
            lastPing: watch.lastPing.map { last in
                LastPing(
                    at: Timestamp3339.text(last.at.milliseconds), result: last.failure == nil ? "answered" : "failed",
                    code: last.failure?.rawValue, detail: last.detail)
            },
            nextPingAt: watch.dueAt.map { Timestamp3339.text($0.milliseconds) }, secret: secret?.text)
    }
}
