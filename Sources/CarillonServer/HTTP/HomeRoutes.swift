import Hummingbird

/// The routes of each home of a process.
final class HomeRoutes: Sendable {
    /// Answers the requests of connections.
    let responder: any HTTPResponder<RouteContext>

    /// - Parameters:
    ///   - homes: At least one.
    ///   - make: Returns the routes of a home.
    init(of homes: [HomeDomain], _ make: (HomeDomain) -> Routes) {
        responder = make(homes[0]).router().buildResponder()
    }
}
