import CarillonCore
import Testing

/// A write of a home.
struct HomeWrite: Sendable {
    let name: String
    let run: @Sendable (any HomeStore) async throws -> Void

    init(_ name: String, _ run: @escaping @Sendable (any HomeStore) async throws -> Void) {
        self.name = name
        self.run = run
    }

    /// Returns the kind of the fault that the write meets; nil without one.
    func fault(through homeStore: any HomeStore) async throws -> StoreFault.Kind? {
        do {
            try await run(homeStore)
            return nil
        } catch let fault as StoreFault {
            return fault.kind
        }
    }
}

/// Handles of two homes on one store.
struct HomeHandles {
    /// The handle of a home whose incarnation was removed.
    let removed: any HomeStore
    /// The handle of a home that exists.
    let living: any HomeStore

    init(of store: any Store) async throws {
        let former = try await store.addIncarnation(of: NodeNumber(1))
        removed = store.home(former)
        living = store.home(try await store.addIncarnation(of: NodeNumber(2)))
        let isRemoved = try await store.removeIncarnation(former)
        try #require(isRemoved)
    }

    /// Checks that each write is refused through the handle of the removed home and leaves the facts as they are, and that no write
    /// fails through the other handle.
    func check(_ writes: [HomeWrite], leaving facts: () async throws -> [String]) async throws {
        let before = try await facts()
        for write in writes {
            let kind = try await write.fault(through: removed)
            #expect(kind == .fenced, "\(write.name)")
            let after = try await facts()
            #expect(after == before, "\(write.name)")
        }
        for write in writes {
            let kind = try await write.fault(through: living)
            #expect(kind == nil, "\(write.name)")
        }
        let after = try await facts()
        #expect(after != before)
    }
}
