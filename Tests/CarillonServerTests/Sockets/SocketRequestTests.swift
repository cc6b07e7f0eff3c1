import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import Logging
import NIOEmbedded
import Testing

@testable import CarillonServer

/// The requests over the socket: each answer is a frame that a strict client can read.
@Suite(.timeLimit(.minutes(5)))
struct SocketRequestTests {
    private static let app = "com.example.app"
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    /// Bytes that are no UTF-8.
    private static let icon = signature + [0xFF, 0xFE, 0x22, 0x5C, 0x00, 0x80]

    private static let offer = #"{"id":"\#(ServiceWorld.service)","version":"1.0.0.0"}"#

    private struct Asker {
        let world: ServiceWorld
        let requests: SocketRequests
        let phone: ServiceWorld.Phone

        init(_ world: ServiceWorld, _ phone: ServiceWorld.Phone) {
            self.world = world
            self.phone = phone
            let domain = world.routes.domain
            requests = SocketRequests(
                domain: domain, addresses: PublicAddresses(base: "https://push.example.com"), anonymousApp: nil,
                responder: world.routes.responder,
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        }

        /// The frame that answers.
        func ask(_ method: String, _ path: String, _ body: String = "") async throws -> (frame: [UInt8], status: Int) {
            let request = ClientFrame.Request(id: 7, method: method, path: path, body: Array(body.utf8))
            let performed = await requests.perform(
                .ask(.device(phone.serial), request), by: RequestingDevice(), from: nil, on: NIOAsyncTestingChannel())
            guard case .asked(let answer) = performed.answer else { throw Unexpected() }
            return (ServerFrame.answer(answer).text, answer.status)
        }
    }

    private struct Unexpected: Error {}

    private func asker() async throws -> (asker: Asker, provider: ServiceWorld.Phone) {
        let world = try await ServiceWorld()
        let phone = try await world.phone(Self.app, of: "ada")
        let provider = try await world.phone(Self.app, of: "ada")
        let keys = String(decoding: ServiceWorld.keys().json.bytes, as: UTF8.self)
        let offered = try await world.routes.request(
            .put, "/v1/device/services", key: provider.credential,
            #"{"name":"Files","version":"1","services":[\#(Self.offer)],"keys":\#(keys),"icon":"\#(Base64URL.encode(Self.icon))"}"#
        )
        #expect(offered.status == 204)
        return (Asker(world, phone), provider)
    }

    @Test func `a device that is stored with its first channel is found by its user agent identifier`() async throws {
        let routes = try await RouteFixture()
        let domain = routes.domain
        let app = try await domain.apps.create(try AppID.checked(Self.app))
        let requests = SocketRequests(
            domain: domain, addresses: PublicAddresses(base: "https://push.example.com"), anonymousApp: app.id,
            responder: routes.responder, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let userAgent = UserAgentID(random: .system)
        var random = SystemRandomNumberGenerator()
        // The second time the device is found.
        for _ in 0..<2 {
            let id = ChannelID.random(using: &random)
            let register = ClientFrame.Register(channelID: id.description)
            let performed = await requests.perform(
                .register(.provisional(userAgent), id, register), by: RequestingDevice(), from: nil,
                on: NIOAsyncTestingChannel())
            guard case .registered(_, _, let found) = performed.answer else { throw Unexpected() }
            #expect(try await domain.devices.device(of: userAgent)?.serial == found)
        }
    }

    @Test func `bytes that are not JSON are written in base64url, and read by the client library`() async throws {
        let (asker, provider) = try await asker()
        let path = "/v1/services/icon?app=\(Self.app)&device=\(provider.id)"
        let (frame, status) = try await asker.ask("GET", path)
        #expect(status == 200 && String(validating: frame, as: UTF8.self) != nil)
        let json = try #require(JSONValue(parsing: frame))
        #expect(json["body"] == .string(Base64URL.encode(Self.icon)))
        #expect(json["encoding"] == .string("base64url") && json["contentType"] == .string("image/png"))
        let read = try ServerFrame.parse(frame)
        #expect(read == .answer(.init(id: 7, status: 200, body: Self.icon, contentType: "image/png")))
    }

    @Test func `each allowed path, and those around it, are answered by a frame that parses`() async throws {
        let (asker, provider) = try await asker()
        let keys = String(decoding: ServiceWorld.keys().json.bytes, as: UTF8.self)
        let id = ServiceWorld.id(1)
        let subscription = String(repeating: "0", count: 32)
        let asked: [(method: String, path: String, body: String, status: Int)] = [
            ("GET", "/v1/device/subscriptions", "", 200),
            ("POST", "/v1/device/subscriptions", "{}", 400),
            ("PUT", "/v1/device/subscriptions", #"{"keys":{}}"#, 200),
            ("DELETE", "/v1/device/subscriptions", "", 200),
            ("GET", "/v1/device/subscriptions/\(subscription)", "", 404),
            ("PATCH", "/v1/device/subscriptions/\(subscription)", #"{"trigger":null}"#, 404),
            ("DELETE", "/v1/device/subscriptions/\(subscription)", "", 404),
            ("PUT", "/v1/device/services", #"{"name":"F","version":"1","services":[],"keys":\#(keys)}"#, 204),
            ("DELETE", "/v1/device/services", "", 204),
            ("GET", "/v1/services", "", 200),
            ("GET", "/v1/services/icon?app=\(Self.app)&device=\(provider.id)", "", 200),
            ("GET", "/v1/services/icon?app=\(Self.app)&device=\(asker.phone.id)", "", 404),
            ("POST", "/v1/services/requests", ServiceWorld.request(id, to: provider), 201),
            ("POST", "/v1/services/requests/\(id)/received", "", 404),
            ("POST", "/v1/services/requests/\(id)/reply", "{}", 400),
            ("DELETE", "/v1/services/requests/\(id)", "", 204),
            ("DELETE", "/v1/services/requests?app=\(Self.app)&device=\(provider.id)", "", 200),
            ("POST", "/v1/inbox", #"{"protocol":1}"#, 200),
            ("GET", "/v1/inbox", "", 404),
            ("GET", "/v1/services/nothing", "", 404),
            ("PUT", "/v1/services", "", 405),
            ("GET", "/v1/device", "", 404),
            ("GET", "/metrics", "", 404),
        ]
        for (method, path, body, expected) in asked {
            let (frame, status) = try await asker.ask(method, path, body)
            let what = "\(method) \(path): \(status) \(String(decoding: frame, as: UTF8.self))"
            #expect(JSONValue(parsing: frame) != nil && String(validating: frame, as: UTF8.self) != nil, "\(what)")
            #expect(throws: Never.self) { try ServerFrame.parse(frame) }
            #expect(status == expected, "\(what)")
        }
    }
}
