import Foundation
import TestSupport
import Testing

@testable import CarillonServer

/// The table of routes and homes has each route, and agrees with the paths.
@Suite(.timeLimit(.minutes(5)))
struct RouteHomeTests {
    @Test func `each route has an entry, each entry has a route, and none contradicts its route`() async throws {
        let routes = try await RouteFixture()
        #expect(routes.routeNames.count > 100 && routes.externalNames == ["POST /push/{token}"])
        #expect(Self.findings(routes.routeNames + routes.externalNames, RouteHome.table) == [])
    }

    @Test func `each case is the case of a route`() {
        for home in RouteHome.allCases { #expect(RouteHome.table.values.contains(home), "\(home)") }
    }

    @Test func `the page on the architecture describes each case`() throws {
        let page = try String(contentsOf: PageCode.root.appending(path: "docs/architecture.md"), encoding: .utf8)
        let rest = try #require(page.components(separatedBy: "\n## To add a route\n").dropFirst().first)
        let section = try #require(rest.components(separatedBy: "\n## ").first)
        let cases = section.matches(of: #/\n\| `(?<name>\w+)` \| /#).map { String($0.name) }
        #expect(cases == RouteHome.allCases.map { "\($0)" })
    }

    @Test func `a route without an entry is found, and an entry without a route`() {
        #expect(Self.findings(["GET /a", "POST /a"], ["GET /a": .process]) == ["POST /a has no entry"])
        #expect(Self.findings(["GET /a"], ["GET /a": .process, "GET /b": .process]) == ["GET /b is no route"])
    }

    @Test(
        arguments: [
            ("GET /push/{token}", .message), ("PUT /push/{token}/watch", .tokenInField), ("POST /GNP1.0", .tokenInPath),
            ("GET /message/{id}", .credential), ("DELETE /v1/devices/{device}", .credential),
            ("PUT /v1/apps/{app}/servers/{device}", .appInPath), ("PUT /v1/device", .registry), ("PUT /v1/device", .device),
            ("DELETE /v1/device/channels/{channel}", .device), ("GET /v1/device/subscriptions/{subscription}", .store),
            ("POST /v1/services/requests/{request}/reply", .parts), ("GET /v1/items/{item}", .appOfSender),
            ("GET /v1/items", .item), ("GET /v1/updates/{update}", .store), ("GET /v1/updates", .appInPath),
            ("DELETE /v1/apps/{app}", .appOfSender), ("GET /v1/attachments/{attachment}", .credential),
            ("POST /v1/attachments", .attachment), ("POST /v1/keys/{key}/rotate", .process),
            ("PUT /v1/apps/{app}/devices", .store), ("POST /v1/apps", .process), ("GET /v1/devices", .newDevice),
            ("GET /v1/attachments", .newAttachment), ("GET /v1/apps/{app}/pushes/parked", .eachHome),
            ("GET /v1/items/updates", .parts), ("GET /v1/things/{thing}", .registry),
        ] as [(String, RouteHome)])
    func `an entry that contradicts its route is found`(route: String, home: RouteHome) {
        #expect(Self.findings([route], [route: home]) == ["\(route) contradicts \(home)"])
    }

    // MARK: Findings

    private static func findings(_ routes: [String], _ table: [String: RouteHome]) -> [String] {
        let missing = routes.filter { table[$0] == nil }.map { "\($0) has no entry" }
        let left = table.keys.filter { !routes.contains($0) }.map { "\($0) is no route" }
        let wrong = table.filter { !agrees($0.key, with: $0.value) }.map { "\($0.key) contradicts \($0.value)" }
        return (missing + left + wrong).sorted()
    }

    /// The kinds of parameters of a path. The first of these that a path has decides which cases its routes can have.
    private static let casesByParameter: [(parameter: String, cases: Set<RouteHome>)] = [
        ("token", [.tokenInPath]), ("id", [.message]), ("device", [.device]), ("item", [.item]),
        ("attachment", [.attachment]),
        ("channel", [.credential]), ("subscription", [.credential]), ("request", [.credential]), ("update", [.appOfSender]),
        ("app", [.process, .registry, .store, .appInPath, .eachHome]), ("key", [.registry, .eachHome]),
    ]

    /// The cases of paths without a parameter.
    private static let others: Set<RouteHome> = [
        .process, .registry, .store, .tokenInField, .newDevice, .credential, .appOfSender, .newAttachment, .eachHome, .parts,
    ]

    /// A case that is absent can have each method.
    private static let methods: [RouteHome: Set<String>] = [
        .process: ["GET", "OPTIONS"], .store: ["GET", "POST"], .newDevice: ["POST"], .newAttachment: ["POST"],
        .parts: ["POST"], .eachHome: ["DELETE", "PATCH", "POST", "PUT"],
    ]

    private static func agrees(_ route: String, with home: RouteHome) -> Bool {
        let words = route.split(separator: " ").map { String($0) }
        guard words.count == 2 else { return false }
        if let methods = methods[home], !methods.contains(words[0]) { return false }
        return cases(of: words[1]).contains(home)
    }

    private static func cases(of path: String) -> Set<RouteHome> {
        let parts = path.split(separator: "/")
        let parameters = parts.filter { $0.hasPrefix("{") }.map { String($0.dropFirst().dropLast()) }
        for (parameter, cases) in casesByParameter where parameters.contains(parameter) { return cases }
        // A path with another parameter has no cases before the list has the parameter.
        guard parameters.isEmpty else { return [] }
        return parts.starts(with: ["v1", "device"]) ? [.credential] : others
    }
}
