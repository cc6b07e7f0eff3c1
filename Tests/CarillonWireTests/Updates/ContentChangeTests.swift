import CarillonWire
import Testing

struct ContentChangeTests {
    private static let changes: [ContentChange] = {
        var changes: [ContentChange] = [.roots, .infrastructures, .resync, .remove(object: "a"), .remove(object: "b")]
        for object in ["a", "b"] {
            for parents in 0...2 {
                for children in 0...2 {
                    changes.append(.refresh(object: object, parents: parents, children: children))
                }
            }
        }
        return changes
    }()

    @Test func `the same root with greater or equal depths coalesces`() {
        let deep = ContentChange.refresh(object: "a", parents: 1, children: 2)
        #expect(deep.coalesces(.refresh(object: "a", parents: 1, children: 2)))
        #expect(deep.coalesces(.refresh(object: "a", parents: 0, children: 1)))
        #expect(!deep.coalesces(.refresh(object: "a", parents: 2, children: 0)))
        #expect(!deep.coalesces(.refresh(object: "a", parents: 0, children: 3)))
        #expect(!deep.coalesces(.refresh(object: "b", parents: 0, children: 0)))
    }

    @Test func `a removal coalesces refreshes of its object, never the reverse`() {
        let refresh = ContentChange.refresh(object: "a", parents: 9, children: 9)
        #expect(ContentChange.remove(object: "a").coalesces(refresh))
        #expect(ContentChange.remove(object: "a").coalesces(.remove(object: "a")))
        #expect(!ContentChange.remove(object: "b").coalesces(refresh))
        #expect(!refresh.coalesces(.remove(object: "a")))
        #expect(!ContentChange.roots.coalesces(.remove(object: "a")))
    }

    @Test func `a resync coalesces all content, and nothing but one coalesces it`() {
        for change in Self.changes {
            #expect(ContentChange.resync.coalesces(change))
            #expect(change.coalesces(.resync) == (change == .resync))
        }
    }

    @Test func `coalescing is reflexive and transitive, so that its order does not matter`() {
        for one in Self.changes {
            #expect(one.coalesces(one))
            for other in Self.changes where one.coalesces(other) {
                for third in Self.changes where other.coalesces(third) { #expect(one.coalesces(third)) }
            }
        }
    }
}
