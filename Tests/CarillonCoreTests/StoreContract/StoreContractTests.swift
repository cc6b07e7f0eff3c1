import CarillonCore
import Foundation
import TestSupport
import Testing

/// Reads the protocols of the store from their sources, and searches a case of `Tests/StoreConformance` for each method.
@Suite(.timeLimit(.minutes(5)))
struct StoreContractTests {
    /// The protocols that are composed in `Store`, as the compiler has them.
    static let composed = Set(
        String(reflecting: (any Store).self).matches(of: #/\w+Store\b/#).map { String($0.output) })

    private static let contract = Result {
        StoreContract(try StoreContract.sources(in: PageCode.root.appending(path: "Sources/CarillonCore")))
    }

    private static let calls = Result {
        try StoreContract.sources(in: PageCode.root.appending(path: "Tests/StoreConformance"))
            .flatMap(StoreContract.calls)
    }

    @Test func `each protocol of the store is read completely`() throws {
        let contract = try Self.contract.get()
        #expect(Self.composed.count > 10)
        #expect(Self.composed.subtracting(contract.requirements.keys).isEmpty)
        for (name, requirements) in contract.requirements {
            #expect(!requirements.isEmpty, "\(name) has no methods")
        }
    }

    @Test(arguments: composed.sorted())
    func `each method of the store is called by a case`(name: String) throws {
        let unused = try Self.contract.get().unused(of: name, by: Self.calls.get()).map(\.description)
        #expect(unused.isEmpty, "\(name): no case calls \(unused.joined(separator: ", "))")
    }

    @Test(arguments: composed.sorted())
    func `no method of the store has a function as a parameter`(name: String) throws {
        let contract = try Self.contract.get()
        #expect(contract.functionTypes.contains("RegistrationChange"), "the names of function types are not read")
        let methods = contract.functionTakers[name, default: []].map(\.description)
        #expect(methods.isEmpty, "\(name): \(methods.joined(separator: ", "))")
    }

    @Test func `methods that take a function are found`() {
        let contract = StoreContract([
            """
            package typealias Change = @Sendable (Int) throws -> Int
            package typealias Number = Int
            """,
            """
            package protocol OtherStore: Sendable {
                func put(_ number: Number, at now: Timestamp) async throws -> Change
                func change(of number: Number, _ change: @escaping Change) async throws
                func each(_ numbers: [Number], work: @escaping @Sendable (Number) -> Void) async throws
            }
            """,
        ])
        let methods = contract.functionTakers["OtherStore"]?.map(\.description)
        #expect(methods == ["change(of:_:)", "each(_:work:)"])
    }

    @Test func `the page on architecture has the number of requirements of each protocol`() throws {
        let path = PageCode.root.appending(path: "docs/architecture.md")
        let page = try String(contentsOf: path, encoding: .utf8)
        let rows = page.matches(of: #/\| `(?<name>\w+Store)` \| [^|]+ \| (?<number>\d+) \|/#)
        let shown = Dictionary(rows.map { (String($0.name), String($0.number)) }) { first, _ in first }
        let counts = try Self.contract.get().requirements.filter { Self.composed.contains($0.key) }.mapValues(\.count)
        #expect(shown == counts.mapValues { String($0) })
        #expect(page.contains("| all | | \(counts.values.reduce(0, +)) |"))
    }

    /// The protocols that are composed in `HomeStore`.
    static let ofHomes = Set(
        String(reflecting: (any HomeStore).self).matches(of: #/\w+Store\b/#).map { String($0.output) })

    /// Methods of a home that write nothing. Each other method has a case that calls it through the handle of a removed home.
    private static let reads: Set<String> = [
        "appsWithUnappliedRules()", "armed(_:)", "armed(on:after:limit:)", "arrival(of:_:at:)",
        "requestBeginning(_:by:to:of:)",
        "audit(of:before:limit:)", "bindingCount(of:)", "bindings(of:after:limit:)", "bindingsToRelease(in:limit:)",
        "bindingsToWake(of:after:limit:)", "channel(_:)", "channel(_:device:)", "channelsOfFormerUsers(of:in:limit:)",
        "cluster(of:)", "completions(of:_:)", "completions(of:at:)", "completions(of:in:after:limit:)", "counts(of:)",
        "device(_:)", "device(registeredBy:in:)", "device(withCredential:)", "devices(app:_:after:limit:)",
        "devices(registeredWith:of:after:limit:)",
        "dueCompletions(of:in:at:limit:)", "dueFirings(in:at:limit:)", "dueQueues(in:at:)", "dueRequests(in:at:limit:)",
        "dueWork(in:at:besides:limit:)", "endedSubscriptions(of:in:limit:)", "envelopes(of:)",
        "expiredContent(of:after:limit:)", "firingNumbers(of:)", "firingTargets(of:)", "handOvers(in:after:limit:)",
        "unusedDevices(_:in:by:limit:)",
        "item(_:)", "items(of:prefix:after:limit:)", "itemsNeverFired(in:after:limit:)",
        "itemsWithFirings(in:after:limit:)",
        "lastExpiredContent(of:)", "liveUpdates(of:)", "logMark(of:)", "nextFiring(of:)",
        "nextThrottledFiring(in:)", "parkedPushes(of:in:limit:)", "poll(of:at:)", "presentBinding(of:)",
        "pushes(for:of:at:)",
        "record(of:at:)", "serials(of:)", "serviceIcon(of:)", "servicePeers(of:limit:)",
        "serviceProviders(for:_:limit:)", "serviceRequest(_:)", "bindingState(of:from:under:)", "subjects(_:)",
        "subscribedItems(of:after:limit:)", "subscribers(of:after:limit:)", "subscription(_:of:)",
        "subscriptions(of:_:after:limit:)", "unfinished(of:)", "unfinishedRequestCount(of:)",
        "unfinishedRequests(of:to:limit:)", "unreceivedContent(of:)", "pendingStatuses(in:limit:)",
        "unwatchedItems(of:updatedBy:after:limit:)", "update(_:of:)", "updates(of:_:before:limit:)", "user(of:)",
        "waitingCount(device:at:)", "waitingHandOvers(in:limit:)", "waitingInAll()", "wakingUpdates(limit:)",
        "watch(of:)",
    ]

    @Test(arguments: ofHomes.sorted())
    func `each method of a home is a read, or is refused to a removed home by a case`(name: String) throws {
        let folder = PageCode.root.appending(path: "Tests/StoreConformance/Homes")
        // Calls of the store itself do not count.
        let calls = try StoreContract.sources(in: folder)
            .flatMap { StoreContract.calls(in: $0.replacing(#/\bstore\b/#, with: "others")) }
        let uncalled = try Self.contract.get().unused(of: name, by: calls).map(\.description)
        let writes = uncalled.filter { !Self.reads.contains($0) }
        #expect(writes.isEmpty, "\(name): no case calls \(writes.joined(separator: ", ")) through a removed home")
    }

    @Test func `only what opens the store and makes the homes of a process has the whole store`() throws {
        let folder = PageCode.root.appending(path: "Sources")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        let owners = try paths.filter { path in
            let source = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            return SwiftSource.code(source).firstMatch(of: #/\b(any|some) Store\b/#) != nil
        }
        let names = owners.compactMap { $0.split(separator: "/").last.map(String.init) }.sorted()
        #expect(names == ["CarillonServer.swift", "HomeDomain+Opening.swift", "StoreFactory.swift"])
    }

    private static let sample = StoreContract([
        """
        /// A comment about `func nothing()`.
        package protocol SampleStore: Sendable {
            /// Returns { and ( of a comment.
            func put(_ value: [Key: Result<Int, Fault>], of owner: Owner) async throws -> Bool
            func put(
                _ value: Int,  // a comment
                at now: Timestamp
            ) async throws
            func each(_ limit: Int, work: @escaping @Sendable (Int) -> Void) async throws
            func all() async throws -> [Int]
            var count: Int { get }
        }
        package protocol Other { func unread() }
        """
    ])

    @Test func `requirements are read with their labels`() {
        #expect(Self.sample.requirements.keys.sorted() == ["SampleStore"])
        let names = Self.sample.requirements["SampleStore"]?.map(\.description)
        #expect(names == Self.all)
    }

    private static let all = ["put(_:of:)", "put(_:at:)", "each(_:work:)", "all()", "count"]
    static let uses: [(String, [String])] = [
        ("", []),
        ("try await store.put([1: f(2, 3)], of: owner)", ["put(_:of:)"]),
        ("fixture.store.put(a < b ? c : d, at: .now)", ["put(_:at:)"]),
        ("store.put(9, by: device)", []),
        ("store\n    .each(3) { _ in }", ["each(_:work:)"]),
        ("#expect(store.count == 0 && base.store.all() == [])", ["all()", "count"]),
        ("// store.all()\nlet text = \"store.all()\"", []),
        ("list.all(); storeCount.count", []),
    ]

    @Test(arguments: uses)
    func `a method that nothing calls is found`(source: String, used: [String]) {
        let unused = Self.sample.unused(of: "SampleStore", by: StoreContract.calls(in: source)).map(\.description)
        #expect(unused == Self.all.filter { !used.contains($0) })
    }
}
