import CarillonBasics
package import CarillonCore
package import CarillonWire
package import Logging
package import NIOCore
import NIOPosix

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Owns the objects that exist once in each process: the registry of apps, keys and users, rate limits, the memory of answers,
/// clocks, and `Homes`.
///
/// A ``HomeDomain`` owns the objects of each home, and refers to the domain. A domain refers to homes, but not to a `HomeDomain`.
package final class Domain: Sendable {
    package let apps: AppRegistrar
    package let documents: AppDocuments
    package let keys: KeyAuthority
    package let users: AppUsers
    package let approvalHooks: AppApprovalHooks
    /// Sends the pushes of all homes.
    package let gateways: Gateways
    package let rateLimits: RateLimits
    /// Limits the requests of operators and senders that read much data.
    let listings: RequestLimiter
    let previews: RequestLimiter
    package let answers: AnswerMemory
    package let inboxPositions: InboxPositions
    /// The addresses of endpoints.
    let addresses: PublicURLs
    /// Encrypts channel tokens.
    let tokens: TokenSealer
    /// Encrypts the secrets of watches.
    let watchSecrets: SecretSealer
    package let homes: Homes
    /// The identifier of this server, which is independent of its addresses.
    package let server: ServerID
    /// Identifies the history of the server. It changes when a backup is restored.
    package let history: Int64
    /// The history in the form that devices receive.
    package var historyName: String { Hexadecimal.encode(history.bigEndianBytes) }
    /// Decides whether data can be removed permanently.
    package let served: ServedTime
    package let time: TimeSource
    let ticks: TickSource
    let log: BoundedLog
    package let logger: Logger

    /// - Parameters:
    ///   - store: The registry, which belongs to no home.
    ///   - tokenKeys: The keys of the key ring.
    ///   - callRules: The addresses that the server can call.
    init(
        store: any AppStore & KeyStore, documents: AppDocuments, tokenKeys: [TokenKey], isKeyRingWrapped: Bool,
        homes: Homes, server: ServerID, history: Int64, served: ServedTime, addresses: PublicURLs, callRules: CallRules,
        rateLimits: RateLimits.Settings, gatewaySettings: GatewaySettings, userKeys: UserKeyFetcher,
        approvalHookCaller: ApprovalHookCaller,
        turnLimits: RequestLimiter.Limits, answerBytes: Int, scheduler: Scheduler, log: BoundedLog, time: TimeSource,
        ticks: TickSource, random: RandomSource
    ) {
        let logger = log.logger
        self.log = log
        self.logger = logger
        self.time = time
        self.ticks = ticks
        self.served = served
        self.server = server
        self.history = history
        self.homes = homes
        self.addresses = addresses
        self.documents = documents
        tokens = TokenSealer(keys: tokenKeys, random: random)
        watchSecrets = SecretSealer(keys: tokenKeys, for: .watch, random: random)
        inboxPositions = InboxPositions(sealer: SecretSealer(keys: tokenKeys, for: .position, random: random))
        answers = AnswerMemory(bytes: answerBytes, scheduler: scheduler)
        listings = RequestLimiter(of: .listing, limits: turnLimits, scheduler: scheduler)
        previews = RequestLimiter(of: .preview, limits: turnLimits, scheduler: scheduler)
        self.rateLimits = RateLimits(settings: rateLimits, ticks: ticks)
        apps = AppRegistrar(apps: store, time: time)
        keys = KeyAuthority(keys: store, time: time, served: served, random: random)
        users = AppUsers(
            apps: store, documents: documents, keys: tokenKeys, isKeyRingWrapped: isKeyRingWrapped, fetcher: userKeys,
            callRules: callRules, time: time, ticks: ticks, random: random, logger: logger)
        approvalHooks = AppApprovalHooks(
            apps: store, documents: documents, keys: tokenKeys, caller: approvalHookCaller, rules: callRules, time: time,
            random: random, logger: logger)
        gateways = Gateways(
            apps: store, documents: documents, keys: tokenKeys, isKeyRingWrapped: isKeyRingWrapped,
            settings: gatewaySettings, time: time, random: random, logger: logger)
    }
}

extension TimeSource {
    package static let system = TimeSource {
        Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
    }
}

extension TickSource {
    package static let system = TickSource { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }
}

extension RandomSource {
    package static let system = RandomSource {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}

extension Scheduler {
    /// Returns a scheduler that runs the work on an event loop of the group. The current event loop is preferred, because it need
    /// not be woken up.
    package static func on(_ group: any EventLoopGroup) -> Scheduler {
        Scheduler { delay, work in
            _ = (MultiThreadedEventLoopGroup.currentEventLoop ?? group.next()).scheduleTask(in: TimeAmount(delay), work)
        }
    }
}
