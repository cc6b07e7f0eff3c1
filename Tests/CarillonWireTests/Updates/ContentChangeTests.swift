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

    @Test func `the same root with greater or equal depths absorbs`() {
        let deep = ContentChange.refresh(object: "a", parents: 1, children: 2)
        #expect(deep.absorbs(.refresh(object: "a", parents: 1, children: 2)))
        #expect(deep.absorbs(.refresh(object: "a", parents: 0, children: 1)))
        #expect(!deep.absorbs(.refresh(object: "a", parents: 2, children: 0)))
        #expect(!deep.absorbs(.refresh(object: "a", parents: 0, children: 3)))
        #expect(!deep.absorbs(.refresh(object: "b", parents: 0, children: 0)))
    }

    @Test func `a removal absorbs refreshes of its object, never the reverse`() {
        let refresh = ContentChange.refresh(object: "a", parents: 9, children: 9)
        #expect(ContentChange.remove(object: "a").absorbs(refresh))
        #expect(ContentChange.remove(object: "a").absorbs(.remove(object: "a")))
        #expect(!ContentChange.remove(object: "b").absorbs(refresh))
        #expect(!refresh.absorbs(.remove(object: "a")))
        #expect(!ContentChange.roots.absorbs(.remove(object: "a")))
    }

    @Test func `a resync absorbs all content, and nothing but one absorbs it`() {
        for change in Self.changes {
            #expect(ContentChange.resync.absorbs(change))
            #expect(change.absorbs(.resync) == (change == .resync))
        }
    }

    @Test func `absorbing is reflexive and transitive, so that it does not matter what was absorbed first`() {
        for one in Self.changes {
            #expect(one.absorbs(one))
            for other in Self.changes where one.absorbs(other) {
                for third in Self.changes where other.absorbs(third) { #expect(one.absorbs(third)) }
            }
        }
    }
}
