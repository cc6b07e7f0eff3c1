import Foundation
import GRDB
import TestSupport
import Testing

@testable import CarillonClient

/// Paths that are stored.
struct StoragePathsTests {
    @Test(arguments: [
        ("/a/store", "/a/store/Inbox/x/1", "/b/Inbox/x/1"), ("/a/store/", "/a/store/x", "/b/x"),
        ("/a/store", "/a/./store/x", "/b/x"), ("/a/store", "/a/store/in:x", "/b/in:x"),
        ("/a/store", "/a/store/\u{301}x", "/b/\u{301}x"), ("./store", "./store/x", "/b/x"),
        ("/a/store", "/a/store/y/../x", "/b/x"),
    ])
    func `a path below the storage directory moves with it`(_ directory: String, _ path: String, _ moved: String) {
        let kept = StoragePaths(directory: directory).kept(path)
        #expect(kept.utf8.starts(with: "in:".utf8))
        #expect(Array(StoragePaths(directory: "/b").path(kept).utf8) == Array(moved.utf8))
    }

    @Test(arguments: ["/a/storehouse/x", "/a/store", "/a", "report.pdf", "./x", "in:x", "/a/store/../x", "", "at:"])
    func `a path elsewhere stays as it is`(_ path: String) {
        let kept = StoragePaths(directory: "/a/store").kept(path)
        #expect(!kept.hasPrefix("in:"))
        #expect(StoragePaths(directory: "/a/store").isKept(kept))
        #if !canImport(Darwin)
            #expect(StoragePaths(directory: "/b").path(kept) == path)
        #endif
    }

    @Test func `a bookmark of another system leaves the path`() {
        #expect(StoragePaths(directory: "/b").path("file:!:/x/a:b") == "/x/a:b")
        #expect(StoragePaths(directory: "/b").path("folder:!:/x/a:b") == "/x/a:b")
    }

    @Test(
        arguments: [
            ("/b/store/Inbox/com.example.a/17", "in:Inbox/com.example.a/17"), ("/b/store/x/y", "in:x/y"),
            ("/gone/Inbox/com.example.a/17", "in:Inbox/com.example.a/17"),
            ("/gone/Inbox/.gathering/3/Inbox/x.txt", "in:Inbox/.gathering/3/Inbox/x.txt"),
            ("/gone/Inbox/.gathering/3/a/.00.part", "in:Inbox/.gathering/3/a/.00.part"),
            ("/gone/Inbox/.payloads/3", "in:Inbox/.payloads/3"), ("/gone/report.pdf", nil), ("/gone/Inbox/a/b/c", nil),
            ("/gone/Inbox/a/b", nil), ("report.pdf", nil),
        ] as [(String, String?)])
    func `the storage of an earlier version is converted, also if its directory was moved before`(
        _ former: String, _ kept: String?
    ) {
        let paths = StoragePaths(directory: "/b/store")
        #expect(paths.converted(former) == kept ?? paths.kept(former))
        #expect(kept != nil || !paths.converted(former).hasPrefix("in:"))
    }

    @Test func `a storage of version 11 is taken over, and its paths are converted`() async throws {
        let directory = TemporaryDirectory()
        let call = StoredCall(
            id: "i", app: "com.example.b", device: "d", service: "s", version: "1", method: "m", deadlineSeconds: 60,
            foreground: "none", key: "k", hash: Data([1]), attachments: ["\(directory.path)/own", "/else/where"],
            parameters: "null", files: [])
        let body = Array(#"{"event":"received","id":"00000000000000000000000000000001"}"#.utf8)
        do {
            let store = try ClientStore(directory: directory.path)
            try await ServiceBox(store: store).save(call, body: [1], claiming: [], keptUntil: .max)
            try await store.inStep { database in
                try ClientSchemaUndo.version12(database)
                try StoreChange.saveServiceEvent(body).apply(to: database)
                try database.execute(
                    sql: "UPDATE service_event SET directory = '/former/Inbox/com.example.a/17'")
            }
        }
        let store = try ClientStore(directory: directory.path, patience: 60)
        let box = ServiceBox(store: store)
        let event = try #require(try await box.events(after: 0, at: 1, limit: 1).events.first)
        #expect(event.directory == "in:Inbox/com.example.a/17")
        let attachments = try #require(try await box.call("i")?.attachments)
        #expect(attachments == ["in:own", store.paths.kept("/else/where")])
    }
}
