import Foundation
import TestSupport
import Testing

/// Reads the stored properties of all sources, and finds the owners of homes, of inboxes, of connections and of whole stores.
@Suite(.timeLimit(.minutes(5)))
struct HomePartsTests {
    /// The types that belong to one home. All other code reaches them through `Homes` or as a `LocalHome`, or has its own store
    /// protocol.
    private static let parts: Set = ["HomeRuntime", "Inbox", "InboxWriter", "LiveSessions", "HomeStore", "Store"]

    /// The parts of a home, and the code that opens and names the store.
    private static let owners: Set = [
        "CarillonCore/HomeRuntime.inbox", "CarillonCore/HomeRuntime.sessions", "CarillonCore/HomeRuntime.store",
        "CarillonCore/Inbox.sessions", "CarillonCore/Inbox.writer", "CarillonCore/InboxWriter.sessions",
        "CarillonCore/OpenedStore.store", "CarillonCore/ShardMove.Participant.home", "CarillonCore/Store",
        "CarillonServer/HomeDomain.runtime",
    ]

    /// The files that use the property `runtime` of a `HomeDomain`, with the members that they use; "" if they use the property itself.
    /// Other files reach a home through `Homes`.
    private static let users: [String: Set<String>] = [
        // Make the home and its features.
        "CarillonServer/Lifecycle/HomeDomain.swift": ["", "has", "inform", "isOpen", "shards", "store", "take"],
        "CarillonServer/Lifecycle/HomeDomain+Opening.swift": ["", "findOthers"],
        // Sets the handler of requests of other processes.
        "CarillonServer/HTTP/HomeRoutes.swift": ["take"],
        // Lets the home acquire and release shards.
        "CarillonServer/Lifecycle/HomeDomain+Moving.swift": [""],
        // Writes data that only the memory of the home has.
        "CarillonServer/Lifecycle/HomeDomain+Stop.swift": ["flush", "hasUnwritten", "writeUnwritten"],
        // Passes the handle of a home to the sweeper of the store.
        "CarillonServer/Lifecycle/CarillonServer.swift": ["store"],
        // Work for the shards of the home.
        "CarillonServer/Lifecycle/UnusedDeviceRemover.swift": ["shards"],
        "CarillonServer/Lifecycle/Sweeper.swift": ["shards"],
    ]

    private struct Reading {
        var fileCount = 0
        var propertyCount = 0
        /// The files with unbalanced brackets.
        var unreadable: [String] = []
        /// The properties with one of the types, by the target and the path in it.
        var found: Set<String> = []
        /// The members of `runtime` that a file uses, by the path of the file.
        var uses: [String: Set<String>] = [:]

        /// - Parameter path: The path of the file in `Sources`.
        mutating func note(_ source: String, at path: String) {
            fileCount += 1
            let members = HomePartsTests.membersOfRuntime(in: source)
            if !members.isEmpty { uses[path] = members }
            guard HomePartsTests.parts.contains(where: { source.contains($0) }) else { return }
            guard let properties = StoredPropertyReader.properties(in: source) else {
                unreadable.append(path)
                return
            }
            propertyCount += properties.count
            let target = path.prefix { $0 != "/" }
            for property in properties where !property.names.isDisjoint(with: HomePartsTests.parts) {
                found.insert("\(target)/\(property.path)")
            }
        }
    }

    private static let root = PageCode.root.appending(path: "Sources")

    private static let reading = Result<Reading, any Error> {
        let root = HomePartsTests.root
        let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path).filter { $0.hasSuffix(".swift") }
        var result = Reading()
        for path in paths {
            result.note(try String(contentsOf: root.appending(path: path), encoding: .utf8), at: path)
        }
        return result
    }

    @Test func `all sources are read`() throws {
        let reading = try Self.reading.get()
        #expect(reading.fileCount > 1000)
        #expect(reading.propertyCount > 2000, "properties are not found")
        #expect(reading.unreadable == [])
    }

    @Test func `only a home has inboxes, connections and a whole store`() throws {
        let others = try Self.reading.get().found.subtracting(Self.owners)
        let paths = others.sorted().joined(separator: "\n")
        #expect(others.isEmpty, "\(paths)")
    }

    @Test func `only the listed files use the home of a process in another way than through Homes`() throws {
        let uses = try Self.reading.get().uses
        for path in Set(uses.keys).union(Self.users.keys).sorted() {
            #expect(uses[path] == Self.users[path], "\(path)")
        }
    }

    /// Returns the members that the code of a source uses of a `runtime`. Another use has the name "".
    private static func membersOfRuntime(in source: String) -> Set<String> {
        guard source.contains("runtime") else { return [] }
        // According to Unicode, there is no word boundary beside a dot between letters.
        let use = #/\bruntime\b(?:\s*[?!]?\s*\.\s*(\w+))?/#.wordBoundaryKind(.simple)
        let uses = SwiftSource.code(source).matches(of: use)
        return Set(uses.map { use in String(use.output.1 ?? "") })
    }

    @Test(
        arguments: [
            ("func end() { domain.runtime.sessions.endAll() }", ["sessions"]), ("runtime\n    .store", ["store"]),
            ("_ = domain?.runtime?.shards", ["shards"]), ("Feed(home: domain.runtime)", [""]),
            ("runtime.flush(runtime.shards, of: runtime)", ["flush", "shards", ""]),
            ("// domain.runtime.sessions\nlet text = \"runtime.store\"", []), ("let runtimes = home.isRuntime", []),
        ] as [(String, Set<String>)])
    func `uses of a home are found in a source`(source: String, members: Set<String>) {
        #expect(Self.membersOfRuntime(in: source) == members)
    }

    @Test func `each owner is needed`() throws {
        let vain = Self.owners.subtracting(try Self.reading.get().found)
        let paths = vain.sorted().joined(separator: "\n")
        #expect(vain.isEmpty, "\(paths)")
    }

    // MARK: How the sources are read

    /// A change of a source that adds a property.
    struct Plant: Sendable {
        var file: String
        var text: String
        var replacement: String
        /// The property that must be found.
        var property: String
    }

    static let plants = [
        Plant(
            file: "CarillonCore/Channels/Publisher.swift", text: "private let home: any LocalHome",
            replacement: "private let inbox: Inbox", property: "CarillonCore/Publisher.inbox"),
        Plant(
            file: "CarillonCore/Devices/DeviceRegistrar.swift", text: "let home: any LocalHome",
            replacement: "var sessions = LiveSessions()", property: "CarillonCore/DeviceRegistrar.sessions"),
        Plant(
            file: "CarillonServer/Feeds/WaitingPoll.swift", text: "private let home: any LocalHome",
            replacement: "private weak var sessions: LiveSessions?", property: "CarillonServer/WaitingPoll.sessions"),
        Plant(
            file: "CarillonServer/Lifecycle/Sweeper.swift", text: "let domain: HomeDomain",
            replacement: "let domain: HomeDomain, store: any HomeStore", property: "CarillonServer/Sweeper.domain"),
        Plant(
            file: "CarillonServer/HTTP/InboxRoutes.swift", text: "let domain: HomeDomain",
            replacement: "let home: HomeRuntime", property: "CarillonServer/InboxRoutes.home"),
    ]

    @Test(arguments: plants)
    func `a property that is added to a source is found`(plant: Plant) throws {
        let source = try String(contentsOf: Self.root.appending(path: plant.file), encoding: .utf8)
        var reading = Reading()
        reading.note(source, at: plant.file)
        #expect(reading.found == [])
        #expect(source.contains(plant.text))
        reading.note(source.replacing(plant.text, with: plant.replacement), at: plant.file)
        #expect(reading.found == [plant.property])
        #expect(reading.unreadable == [])
    }

    static let samples: [(source: String, found: [String])] = [
        ("struct Room { let inbox: Inbox }", ["Room.inbox"]),
        ("final class Room { private weak var sessions: LiveSessions? }", ["Room.sessions"]),
        ("actor Room { var inboxes: [Inbox] = [] }", ["Room.inboxes"]),
        ("struct Room { let `in`: Inbox }", ["Room.in"]),
        ("struct Room { let inbox: CarillonCore.Inbox }", ["Room.inbox"]),
        ("struct Room { let store: (any Store)? }", ["Room.store"]),
        ("struct Room { let store:\n    any HomeStore & Sendable\n}", ["Room.store"]),
        ("struct Room { let writers: Mutex<[Int: InboxWriter]> }", ["Room.writers"]),
        ("struct Room { let make: @Sendable () -> Inbox }", ["Room.make"]),
        ("struct Room { let count: Int, inbox: Inbox }", ["Room.count"]),
        ("struct Room { private let sessions = LiveSessions() }", ["Room.sessions"]),
        ("struct Room { static let (sessions, count) = (LiveSessions(), 0) }", ["Room.sessions"]),
        ("struct Room { let sessions = { LiveSessions() }() }", ["Room.sessions"]),
        ("struct Room { lazy var inbox: Inbox = { made() }() }", ["Room.inbox"]),
        ("struct Room { var inbox: Inbox { didSet { note() } } }", ["Room.inbox"]),
        ("class Room { class var size: Int { 1 }\n    let inbox: Inbox }", ["Room.inbox"]),
        ("struct Room {\n    init() { let size = 1 }\n    let inbox: Inbox\n}", ["Room.inbox"]),
        ("struct Room {\n#if DEBUG\n    let inbox: Inbox\n#endif\n}", ["Room.inbox"]),
        ("struct Room { struct Shelf { let inbox: Inbox }\n    let shelf: Shelf }", ["Room.Shelf.inbox"]),
        ("extension Room.Shelf { static let inbox: Inbox? = nil }", ["Room.Shelf.inbox"]),
        ("func make() { struct Room { let inbox: Inbox } }", ["Room.inbox"]),
        ("enum Room { indirect case open(Inbox, Int), closed }", ["Room.open"]),
        ("let sessions = LiveSessions()", ["sessions"]),
        ("package typealias Everything = HomeStore & Sendable", ["Everything"]),
        ("let ends = text.matches(of: /[{(]/)\nstruct Room { let inbox: Inbox }", ["Room.inbox"]),
        ("struct Room { let a: Inbox }\nstruct Hall { let b: any Store }", ["Room.a", "Hall.b"]),
        ("struct Room { var inbox: Inbox { homes.inbox } }", []),
        ("struct Room { var inbox: Inbox { get { made() } } }", []),
        ("protocol Room { var sessions: LiveSessions { get } }", []),
        ("struct Room { init(_ inbox: Inbox) { let sessions = LiveSessions() } }", []),
        ("struct Room { func inbox(in store: any Store) -> Inbox { made(store) } }", []),
        ("struct Room { let size: Int\n    subscript(index: Int) -> Inbox { made() } }", []),
        ("struct Room { let mode: Inbox.Mode, answers: [Inbox.Answer] }", []),
        ("struct Room { let store: any InboxStore, homes: Homes, other: Hall.Store }", []),
        ("struct Inbox { enum Store { case open } }", []),
        ("struct Room { let text = \"an Inbox\" } // let inbox: Inbox", []),
        ("struct Room { /* let inbox: Inbox */ let half = 1 / 2 }", []),
    ]

    @Test(arguments: samples)
    func `stored properties are found in a source`(source: String, found: [String]) throws {
        let properties = try #require(StoredPropertyReader.properties(in: source))
        #expect(properties.filter { !$0.names.isDisjoint(with: Self.parts) }.map(\.path) == found)
    }

    @Test(arguments: [
        "struct Room {", "struct Room { let size = 1 } }", "let size = (1}", "struct Room { let size: Int ) Inbox",
    ])
    func `a source with unbalanced brackets is refused`(source: String) {
        #expect(StoredPropertyReader.properties(in: source) == nil)
    }
}
