import Foundation
import Testing

@testable import CarillonClient

/// The selection of a handler for a request, and the error without one; and definitions.
@Suite(.timeLimit(.minutes(5)))
struct ServiceRouterTests {
    private let router = ServiceRouter()
    private let method = ServiceMethod("com.example.x", "1.0", "m")

    private func code(_ method: ServiceMethod) async -> ServiceError.Code? {
        do {
            _ = try await router.route(method)
            return nil
        } catch { return (error as? ServiceError)?.code }
    }

    @Test func `each missing thing has its own name, and each one that is switched off`() async {
        #expect(await code(method) == .serviceNotFound)
        await router.handle(method, .init(handler: { _ in ServiceReply() }, atMostOnce: false))
        #expect(await code(method) == nil)
        #expect(await code(.init("com.example.y", "1.0", "m")) == .serviceNotFound)
        #expect(await code(.init("com.example.x", "1.1", "m")) == .serviceVersionNotFound)
        #expect(await code(.init("com.example.x", "1.0", "n")) == .serviceMethodNotFound)
        await router.setMethod(method, isDisabled: true)
        #expect(await code(method) == .methodDisabled)
        await router.setVersion("1.0", of: "com.example.x", isDisabled: true)
        #expect(await code(method) == .versionDisabled)
        await router.setService("com.example.x", isDisabled: true)
        #expect(await code(method) == .serviceDisabled)
        await router.setService("com.example.x", isDisabled: false)
        await router.setVersion("1.0", of: "com.example.x", isDisabled: false)
        await router.setMethod(method, isDisabled: false)
        #expect(await code(method) == nil)
    }

    @Test func `a request waits for the handler of an offered service until it expires`() async throws {
        await router.offer([method])
        let waiting = (0..<3).map { _ in Task { try await router.route(method) } }
        let cancelled = Task { try await router.route(method) }
        try await Task.sleep(for: .milliseconds(20))
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        await router.handle(method, .init(handler: { _ in ServiceReply() }, atMostOnce: true))
        for task in waiting { #expect(try await task.value.atMostOnce) }
    }

    @Test func `the ready-made services can be offered and called`() throws {
        let services: [ServiceDefinition] = [
            .transferFile, .editFile, .saveEditedFile, .sendEmail, .openURL, .createCalendarItem,
        ]
        #expect(Set(services.map(\.service)).count == 6)
        #expect(
            ServiceDefinition.transferFile.allMethods == [
                ServiceMethod("com.good.gdservice.transfer-file", "1.0.0.0", "transferFile")
            ])
        #expect(ServiceDefinition.saveEditedFile.version == "1.0.0.1")
        try ServiceDefinition.openURL.check(["url": "https://example.com"], attachments: 0, of: "open")
        try ServiceDefinition.sendEmail.check(["to": ["a"], "subject": "s"], attachments: 2, of: "sendEmail")
        for (value, count) in [(["url": 1], 0), ([:], 0), (["url": "x", "other": 1], 0), (["url": "x"], 1)]
            as [(ServiceValue, Int)]
        {
            #expect(throws: ServiceError.self) {
                try ServiceDefinition.openURL.check(value, attachments: count, of: "open")
            }
        }
        #expect(throws: ServiceError.self) {
            try ServiceDefinition.transferFile.check(nil, attachments: 0, of: "transferFile")
        }
        #expect(throws: ServiceError.self) {
            try ServiceDefinition.transferFile.check(nil, attachments: 2, of: "transferFile")
        }
    }

    @Test func `a number that is out of range in a definition is reported with its place`() {
        let document = #"{"service-id":"com.example.x","methods":{"a/b":{"attachments":[0,1e999]}}}"#
        let error = #expect(throws: ServiceDefinitionFaults.self) { try ServiceDefinition(Data(document.utf8)) }
        #expect(error?.faults.map(\.place) == ["/methods/a~1b/attachments/1"])
    }

    @Test func `a definition can have each type, and a wrong type is reported with its place`() throws {
        let document = """
            {"service-id": "com.example.x", "version": "1", "title": "X", "methods": {"m": {"parameters": {"type": "object", "members": {
            "n": {"type": "null"}, "b": {"type": "boolean"}, "i": {"type": "integer"}, "d": {"type": "number"}, "s": {"type": "string"},
            "x": {"type": "bytes"}, "a": {"type": "array", "items": {"type": "integer"}}, "o": {"type": "string", "optional": true}
            }}, "reply": {"type": "array", "items": {"type": "string"}}}}}
            """
        let definition = try ServiceDefinition(Data(document.utf8))
        let good: [String: ServiceValue] = [
            "n": nil, "b": true, "i": 1, "d": 1.5, "s": "s", "x": .bytes(Data()), "a": [1, 2],
        ]
        try definition.check(.object(good), attachments: 0, of: "m")
        var whole = good
        whole["d"] = 2
        whole["o"] = "o"
        try definition.check(.object(whole), attachments: 0, of: "m")
        let bad: [(String, ServiceValue)] = [
            ("n", 1), ("b", 1), ("i", 1.5), ("d", "1"), ("s", nil), ("x", "AA"), ("a", 1), ("a", [1, "2"]), ("o", 1),
            ("z", 1),
        ]
        for (name, value) in bad {
            var changed = good
            changed[name] = value
            let error = #expect(throws: ServiceError.self) {
                try definition.check(.object(changed), attachments: 0, of: "m")
            }
            #expect(error?.code == .serviceParametersInvalid && error?.text.contains("/\(name)") == true, "\(name)")
        }
        for name in good.keys {
            var changed = good
            changed[name] = nil as ServiceValue?
            #expect(throws: ServiceError.self) { try definition.check(.object(changed), attachments: 0, of: "m") }
        }
        try definition.check(reply: ["a"], attachments: 0, of: "m")
        #expect(throws: ServiceError.self) { try definition.check(reply: [1], attachments: 0, of: "m") }
        #expect(throws: ServiceError.self) { try definition.check(reply: [], attachments: 1, of: "m") }
    }
}
