import CarillonCore
import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct NameResolverTests {
    /// A resolver whose look-ups end when the test allows it.
    private func makeResolver(
        threads: Int, gate: DispatchSemaphore, patience: TimeAmount = .seconds(2), slow: TimeAmount = .seconds(60),
        began: @escaping @Sendable (String) -> Void = { _ in }
    ) -> NameResolver {
        NameResolver(
            group: MultiThreadedEventLoopGroup.singleton, threadCount: threads, patience: patience, slow: slow,
            lookup: NameLookup { name in
                began(name)
                if name.hasPrefix("slow") { gate.wait() }
                return .addresses([.v4(1)])
            })
    }

    @Test func `while two look-ups of a domain are slow, no further one of it begins, and those of others do`() async {
        let gate = DispatchSemaphore(value: 0)
        let (begun, began) = AsyncStream.makeStream(of: String.self)
        // Every look-up that is under way counts as slow.
        let resolver = makeResolver(
            threads: 8, gate: gate, patience: .seconds(30), slow: .nanoseconds(0), began: { began.yield($0) })
        defer { resolver.shutdown() }
        async let first = resolver.addresses(of: "slow1.bad.example")
        var names = begun.makeAsyncIterator()
        #expect(await names.next() == "slow1.bad.example")
        #expect(await resolver.addresses(of: "second.bad.example") == .addresses([.v4(1)]), "one slow one is no domain")
        #expect(await names.next() == "second.bad.example")
        async let third = resolver.addresses(of: "slow3.bad.example")
        #expect(await names.next() == "slow3.bad.example")
        for name in ["fourth.bad.example", "bad.example", "slow5.deep.bad.example"] {
            #expect(await resolver.addresses(of: name) == .notSent(reason: "two other look-ups of the domain are slow"))
        }
        #expect(await resolver.addresses(of: "sixth.good.test") == .addresses([.v4(1)]))
        #expect(await names.next() == "sixth.good.test")
        gate.signal()
        gate.signal()
        #expect(await [first, third] == [.addresses([.v4(1)]), .addresses([.v4(1)])])
        #expect(await resolver.addresses(of: "fourth.bad.example") == .addresses([.v4(1)]))
    }

    @Test func `a name whose answer takes too long is not resolved`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = makeResolver(threads: 1, gate: gate)
        #expect(await resolver.addresses(of: "slow.example") == .notFound("it took too long"))
        gate.signal()
        resolver.shutdown()
    }

    @Test func `a name whose turn did not come was not resolved, and its backend is not at fault`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = makeResolver(threads: 1, gate: gate)
        async let slow = resolver.addresses(of: "slow.example")
        #expect(await slow == .notFound("it took too long"))
        #expect(await resolver.addresses(of: "quick.example") == .notSent(reason: "every resolver thread is busy"))
        gate.signal()
        resolver.shutdown()
    }

    @Test func `a slow name occupies one thread, and others are resolved meanwhile`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = makeResolver(threads: 2, gate: gate, patience: .seconds(30))
        async let slow = resolver.addresses(of: "slow.example")
        #expect(await resolver.addresses(of: "quick.example") == .addresses([.v4(1)]))
        gate.signal()
        _ = await slow
        resolver.shutdown()
    }
}
