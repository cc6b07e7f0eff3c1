import CarillonCore
import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(1)))
struct NameResolverTests {
    /// A resolver whose look-ups end when the test says so.
    private func makeResolver(threads: Int, gate: DispatchSemaphore) -> NameResolver {
        NameResolver(
            group: MultiThreadedEventLoopGroup.singleton, threadCount: threads, patience: .milliseconds(200),
            lookUp: NameLookUp { name in
                if name.hasPrefix("slow") { gate.wait() }
                return .addresses([.v4(1)])
            })
    }

    @Test func `a name whose answer takes too long is not resolved`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = makeResolver(threads: 1, gate: gate)
        #expect(await resolver.addresses(of: "slow.example") == .notFound("it took too long"))
        gate.signal()
        resolver.shutdown()
    }

    @Test func `a name whose turn did not come was not asked, and says nothing of its back end`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = makeResolver(threads: 1, gate: gate)
        async let slow = resolver.addresses(of: "slow.example")
        #expect(await slow == .notFound("it took too long"))
        #expect(await resolver.addresses(of: "quick.example") == .notAsked(reason: "every resolver thread is held"))
        gate.signal()
        resolver.shutdown()
    }

    @Test func `a slow name holds one thread, and others are resolved meanwhile`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = makeResolver(threads: 2, gate: gate)
        async let slow = resolver.addresses(of: "slow.example")
        #expect(await resolver.addresses(of: "quick.example") == .addresses([.v4(1)]))
        gate.signal()
        _ = await slow
        resolver.shutdown()
    }
}
