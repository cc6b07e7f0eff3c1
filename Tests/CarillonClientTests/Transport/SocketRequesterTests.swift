import CarillonWire
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Requests on the live connection: each has its answer, or is sent in another way.
@Suite(.timeLimit(.minutes(5)))
struct SocketRequesterTests {
    private final class Sent: Sendable {
        let requests = Mutex<[ClientFrame.Request]>([])
        var count: Int { requests.withLock { $0.count } }
    }

    private let sent = Sent()
    private func requester() -> SocketRequester {
        SocketRequester { [sent] request in sent.requests.withLock { $0.append(request) } }
    }

    private func answer(_ id: Int, _ status: Int = 204) -> ServerFrame.Answer { .init(id: id, status: status, body: []) }

    @Test func `an answer is assigned to its request, in any order`() async throws {
        let requester = requester()
        #expect(await requester.request("POST", "/a", [1]) == nil, "nobody is there")
        requester.connected()
        async let first = requester.request("POST", "/a", [1])
        try await eventually { sent.count == 1 }
        async let second = requester.request("DELETE", "/b", [])
        try await eventually { sent.count == 2 }
        let requests = sent.requests.withLock { $0 }
        #expect(requests.map(\.path) == ["/a", "/b"])
        #expect(requests.allSatisfy { $0.id >= SocketRequester.firstID })
        requester.answered(answer(7))
        requester.answered(answer(requests[1].id, 404))
        requester.answered(answer(requests[0].id, 201))
        #expect(await first?.status == 201)
        #expect(await second?.status == 404)
    }

    @Test func `a connection that ends, and a task that is cancelled, leave nobody waiting`() async throws {
        let requester = requester()
        requester.connected()
        async let lost = requester.request("POST", "/a", [])
        try await eventually { sent.count == 1 }
        requester.disconnected()
        #expect(await lost == nil)
        #expect(await requester.request("POST", "/a", []) == nil)
        requester.connected()
        let task = Task { await requester.request("POST", "/b", []) }
        try await eventually { sent.count == 2 }
        task.cancel()
        #expect(await task.value == nil)
    }

    @Test func `the number and the bytes of waiting requests are limited`() async throws {
        let requester = requester()
        requester.connected()
        #expect(
            await requester.request("POST", "/", Array(repeating: 0, count: Limits.clientFrameBytes)) == nil,
            "no frame is so long")
        await withDiscardingTaskGroup { group in
            for _ in 0..<SocketRequester.mostAtOnce { group.addTask { _ = await requester.request("POST", "/", []) } }
            try? await eventually { sent.count == SocketRequester.mostAtOnce }
            let beyond = await requester.request("POST", "/", [])
            #expect(beyond == nil)
            #expect(sent.count == SocketRequester.mostAtOnce)
            requester.answered(answer(sent.requests.withLock { $0[0].id }))
            group.addTask { _ = await requester.request("POST", "/", []) }
            try? await eventually { sent.count == SocketRequester.mostAtOnce + 1 }
            requester.disconnected()
        }
        requester.connected()
        let before = sent.count
        await withDiscardingTaskGroup { group in
            let body = [UInt8](repeating: 0, count: 60_000)
            for _ in 0..<4 { group.addTask { _ = await requester.request("POST", "/", body) } }
            try? await eventually { sent.count == before + 4 }
            let beyond = await requester.request("POST", "/", body)
            #expect(beyond == nil)
            requester.disconnected()
        }
    }
}
