import CarillonWire
import Foundation
import Testing

@testable import CarillonClient

/// The limits of the services that an app offers, and the refusals of the server.
@Suite(.timeLimit(.minutes(5)))
struct OfferTests {
    private static let png = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])

    private func offer(
        _ name: String = "Files", _ version: String = "1", icon: Data? = nil, _ methods: [ServiceMethod] = []
    ) throws -> ServiceOffering {
        try ServiceOffering(name: name, version: version, icon: icon, checking: methods)
    }

    private func methods(_ count: Int) -> [ServiceMethod] {
        (0..<count).flatMap { number in
            ["m", "n"].map { ServiceMethod("com.example.s\(number)", "1", $0) }
        }
    }

    @Test func `a definition within the limits is offered, and another one is refused with its name`() throws {
        let largest = Self.png + Data(count: 32_768 - 8)
        let offering = try offer(
            String(repeating: "ä", count: 64), String(repeating: "1", count: 64), icon: largest, methods(64))
        #expect(offering.services.count == 64, "two methods of a version are one service")
        let refused: [(String, () throws -> ServiceOffering)] = [
            ("\"name\"", { try offer(String(repeating: "a", count: 129)) }), ("\"name\"", { try offer("") }),
            ("\"name\"", { try offer("a\nb") }), ("\"version\"", { try offer("a", String(repeating: "1", count: 65)) }),
            ("\"version\"", { try offer("a", "") }), ("65 versions", { try offer(methods(65)) }),
            ("PNG", { try offer(icon: Data("GIF89a".utf8)) }), ("PNG", { try offer(icon: Data()) }),
            ("32769", { try offer(icon: largest + Data(count: 1)) }),
        ]
        for (place, make) in refused {
            let error = #expect(throws: ServiceError.self) { try make() }
            #expect(error?.code == .fieldInvalid && error?.text.contains(place) == true, "\(place): \(error?.text ?? "")")
        }
    }

    private func offer(_ methods: [ServiceMethod]) throws -> ServiceOffering { try offer("a", "1", methods) }

    @Test(arguments: [
        ("Com.example", "1", "m", ServiceError.Code.serviceIDInvalid), ("com.example", "1.x", "m", .serviceIDInvalid),
        ("com.example", "1", "9", .serviceMethodNotFound),
    ])
    func `a malformed name has its code and its place`(
        _ service: String, _ version: String, _ name: String, _ code: ServiceError.Code
    ) async throws {
        let method = ServiceMethod(service, version, name)
        let error = #expect(throws: ServiceError.self) { try offer([ServiceEngineFixture.method, method]) }
        #expect(error?.code == code && error?.text.hasPrefix("Method 2: ") == true)
        let fixture = try await ServiceEngineFixture()
        let refused = await #expect(throws: ServiceError.self) {
            _ = try await fixture.client.call(method, of: .init(app: "com.example.files"))
        }
        #expect(refused?.code == code)
        if code == .serviceIDInvalid {
            let unfound = await #expect(throws: ServiceError.self) {
                _ = try await fixture.client.providers(of: service, version: version)
            }
            #expect(unfound?.code == code)
        }
        #expect(fixture.web.asked.isEmpty, "nothing was asked")
    }

    @Test func `an offer that the server refuses is an event`() async throws {
        let fixture = try await ServiceEngineFixture()
        fixture.web.on(
            "PUT /v1/device/services", 400,
            #"{"type":"t","title":"t","status":400,"detail":"Too old.","code":"field_invalid"}"#)
        var events = fixture.provider.events.makeAsyncIterator()
        let run = Task { await fixture.engine.run() }
        try await fixture.provider.offer(name: "Files", version: "1", [ServiceEngineFixture.method])
        guard case .offerRefused(let error)? = await events.next() else {
            Issue.record("another event came")
            return
        }
        #expect(error == ServiceError(.fieldInvalid, "Too old."))
        run.cancel()
        await run.value
    }
}
