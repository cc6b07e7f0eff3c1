package import CarillonCore
import CarillonWire
import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Resolves host names on threads of its own, because the system's resolver blocks.
///
/// Each call resolves its name once. If the answer takes too long, the name counts as not resolved. If all threads are busy until
/// the deadline, the name counts as not asked, which is not a fault of its backend. While two look-ups under a domain are slow,
/// no other look-up under it begins, so that a domain with unresponsive name servers does not delay others.
final class NameResolver: Sendable {
    private let threads: NIOThreadPool
    private let group: any EventLoopGroup
    private let patience: TimeAmount
    private let lookup: NameLookup
    /// The start times of pending look-ups, by domain.
    private let begun = Mutex<[String: [NIODeadline]]>([:])
    private static let slowPerDomain = 2
    private let slow: TimeAmount
    static let patience = TimeAmount.seconds(5)

    init(
        group: any EventLoopGroup, threadCount: Int = 8, patience: TimeAmount = NameResolver.patience,
        slow: TimeAmount = .seconds(1), lookup: NameLookup = .system
    ) {
        self.group = group
        self.slow = slow
        self.patience = patience
        self.lookup = lookup
        threads = NIOThreadPool(numberOfThreads: threadCount)
        threads.start()
    }

    /// Releases the threads without waiting for pending look-ups.
    func shutdown() { threads.shutdownGracefully { _ in } }

    func addresses(of name: String) async -> NameLookup.Answer {
        let domain = name.split(separator: ".").suffix(2).joined(separator: ".")
        guard let start = begin(domain) else { return .notSent(reason: "two other look-ups of the domain are slow") }
        let loop = group.next()
        let promise = loop.makePromise(of: NameLookup.Answer.self)
        let phase = Mutex(Phase.waiting)
        let deadline = loop.scheduleTask(in: patience) {
            let earlier = phase.withLock { phase in
                defer { phase = .abandoned }
                return phase
            }
            promise.succeed(
                earlier == .waiting ? .notSent(reason: "every resolver thread is busy") : .notFound("it took too long"))
        }
        threads.submit { [self] state in
            let isWanted = phase.withLock { phase in
                guard phase == .waiting, state == .active else { return false }
                phase = .asked
                return true
            }
            guard isWanted else {
                end(domain, start)
                return promise.succeed(.notSent(reason: "the server is stopping"))
            }
            let answer = lookup.ask(name)
            deadline.cancel()
            end(domain, start)
            // After the deadline this has no effect, because a promise keeps its first value.
            promise.succeed(answer)
        }
        do {
            return try await promise.futureResult.get()
        } catch {
            return .notSent(reason: "the look-up ended without an answer")
        }
    }

    private func begin(_ domain: String) -> NIODeadline? {
        let now = NIODeadline.now()
        return begun.withLock { begun in
            guard begun[domain, default: []].count(where: { now - $0 >= slow }) < Self.slowPerDomain else { return nil }
            begun[domain, default: []].append(now)
            return now
        }
    }

    private func end(_ domain: String, _ start: NIODeadline) {
        begun.withLock { begun in
            if let index = begun[domain]?.firstIndex(of: start) { begun[domain]?.remove(at: index) }
            if begun[domain]?.isEmpty == true { begun[domain] = nil }
        }
    }

    private enum Phase {
        case waiting
        case asked
        case abandoned
    }
}

/// One blocking look-up of the addresses of a name.
package struct NameLookup: Sendable {
    package enum Answer: Equatable, Sendable {
        case addresses([NetworkAddress])
        /// The name does not exist, or no name server that was reached knows it.
        case notFound(String)
        /// This machine could not send the query.
        case notSent(reason: String)
    }

    package let ask: @Sendable (String) -> Answer

    package init(ask: @escaping @Sendable (String) -> Answer) { self.ask = ask }

    /// The system's resolver, in its order of preference.
    package static let system = NameLookup { name in
        var hints = addrinfo()
        #if canImport(Glibc)
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
            hints.ai_socktype = SOCK_STREAM
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(name, nil, &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        guard status == 0 else {
            if status == EAI_MEMORY || status == EAI_SYSTEM { return .notSent(reason: "getaddrinfo \(status)") }
            return .notFound(String(cString: gai_strerror(status)))
        }
        var addresses: [NetworkAddress] = []
        var next = list
        while let entry = next?.pointee {
            if let address = NetworkAddress(entry.ai_addr, length: entry.ai_addrlen), !addresses.contains(address) {
                addresses.append(address)
            }
            next = entry.ai_next
        }
        return addresses.isEmpty ? .notFound("the name has no address") : .addresses(addresses)
    }
}

extension NetworkAddress {
    /// The address is read from its text form, because the members of the C structures belong to different modules in different
    /// builds.
    fileprivate init?(_ pointer: UnsafeMutablePointer<sockaddr>?, length: socklen_t) {
        guard let pointer else { return nil }
        var text = [CChar](repeating: 0, count: 1025)
        guard getnameinfo(pointer, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
        let bytes = text.prefix { $0 != 0 && $0 != CChar(UInt8(ascii: "%")) }.map { UInt8(bitPattern: $0) }
        self.init(String(decoding: bytes, as: UTF8.self))
    }
}
