import Foundation
import TestSupport
import Testing

/// Compares the folders of CarillonCore with their order.
@Suite(.timeLimit(.minutes(5)))
struct FolderGraphTests {
    /// The folders in order. Each uses only folders before it, in its own layer or in an earlier one. The first is CarillonCore itself.
    static let layers = [
        [""],
        ["Identifiers", "Calls", "Health", "Metrics", "Time", "Memory", "Addresses", "Limits", "Vapid"],
        ["Apps", "Keys", "Users", "Gateways"],
        ["Inbox"],
        ["Delivery", "Sessions"],
        ["Homes", "LeasedWork"],
        [
            "Channels", "Devices", "Pushes", "Watches", "Subscriptions", "Updates", "Services", "Attachments", "Approvals",
        ],
        ["Stores", "HomeRuntime"],
    ]
    private static let order = layers.flatMap { $0 }

    private static let graph = Result<FolderGraph, any Error> {
        let root = PageCode.root.appending(path: "Sources/CarillonCore")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path).filter { $0.hasSuffix(".swift") }
        var sources: [String: String] = [:]
        for path in paths { sources[path] = try String(contentsOf: root.appending(path: path), encoding: .utf8) }
        return FolderGraph(sources)
    }

    @Test func `the list has each folder of CarillonCore, and no other`() throws {
        let graph = try Self.graph.get()
        #expect(graph.folders.sorted() == Self.order.sorted())
    }

    @Test func `a folder uses only folders that come before it`() throws {
        let graph = try Self.graph.get()
        #expect(graph.uses.count > 500, "uses are not found")
        #expect(graph.uses.contains { $0.folder == "Delivery" && $0.type == "Envelope" && $0.typeFolder == "Inbox" })
        let against = graph.uses(against: Self.order).map(\.description).joined(separator: "\n")
        #expect(against.isEmpty, "\(against)")
    }

    @Test func `no two folders declare types of one name`() throws {
        let graph = try Self.graph.get()
        #expect(graph.ambiguousTypes.sorted() == [])
    }

    @Test func `the page on the architecture shows the layers`() throws {
        let page = try String(contentsOf: PageCode.root.appending(path: "docs/architecture.md"), encoding: .utf8)
        let lines = page.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let shown = lines.filter { $0.hasPrefix("│ ") && $0.dropFirst(2).first?.isNumber == true }
        let layers = Self.layers.enumerated().map { "│ \($0.offset)  \($0.element.joined(separator: ", "))" }
        let fromAbove: [String] = layers.dropFirst().reversed()
        #expect(shown == fromAbove)
    }

    // MARK: How the sources are read

    private static let declarations = """
        package struct Shelf { package enum Kind { case high } }
        private enum Hidden {}
        struct Box<Content: Sendable> { var content: Content }
        """

    static let uses: [(source: String, types: [String])] = [
        ("struct Room { var shelf: Shelf? }", ["Shelf"]),
        ("let kind = Shelf.Kind.high", ["Shelf"]),
        ("extension Shelf.Kind { var isHigh: Bool { self == .high } }", ["Shelf"]),
        ("func room() -> Range<Int> { 0...Shelf.count }", ["Shelf"]),
        ("package typealias Room = Sendable & Shelf", ["Shelf"]),
        ("struct Room { func box() -> some Sequence<Box<Int>> { [] } }", ["Box"]),
        ("// Shelf\nlet text = \"a Shelf\" /* Shelf */", []),
        ("struct Room { enum Shelf { case none }; var shelf: Shelf }", []),
        ("struct Room { enum Shelf {} }\nextension Room { func shelf() -> Shelf? { nil } }", []),
        ("struct Room<Shelf: Equatable> { var shelf: Shelf }", []),
        ("private struct Shelf {}\nfunc shelf() { _ = Shelf() }", []),
        ("struct Room { var hidden: Hidden, content: Content, kind: Kind, other: Other.Shelf }", []),
        ("protocol Room { associatedtype Shelf; func shelf() -> Shelf }", []),
    ]

    @Test(arguments: uses)
    func `names of types are found in a source`(source: String, types: [String]) {
        let graph = FolderGraph(["Things/Shelf.swift": Self.declarations, "Rooms/Sub/Room.swift": source])
        #expect(graph.folders == ["Things", "Rooms"])
        #expect(Set(graph.uses.map(\.type)) == Set(types))
        #expect(graph.uses.allSatisfy { $0.folder == "Rooms" && $0.typeFolder == "Things" })
    }

    @Test func `folders that use each other are found in any order`() {
        let graph = FolderGraph([
            "One/A.swift": "struct A { var b: B? }",
            "Two/B.swift": "enum B { case c(C) }",
            "Three/C.swift": "final class C { let a: A? = nil }",
        ])
        for order in [["One", "Two", "Three"], ["Three", "Two", "One"], ["Two", "One", "Three"]] {
            #expect(!graph.uses(against: order).isEmpty)
        }
        let uses = graph.uses(against: ["One", "Three", "Two"]).map(\.description)
        #expect(uses == ["One/A.swift uses B of Two"])
    }

    @Test func `a use of a folder that is not in the list is found`() {
        let graph = FolderGraph([
            "One/A.swift": "struct A { var b: B }",
            "Two/B.swift": "struct B {}",
            "Root.swift": "struct Root {}",
        ])
        #expect(graph.uses(against: ["", "One"]).map(\.type) == ["B"])
        #expect(graph.uses(against: ["", "Two", "One"]).isEmpty)
    }

    @Test func `two types of one name are found`() {
        let graph = FolderGraph([
            "One/A.swift": "struct A {}\nstruct B {}",
            "Two/A.swift": "enum A {}",
            "Two/B.swift": "private class B {}",
        ])
        #expect(graph.ambiguousTypes == ["A"])
    }
}
