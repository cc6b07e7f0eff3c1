import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestSupport
import Testing

@testable import CarillonSQLite

/// The settings of apps of a file of version 35.
@Suite(.timeLimit(.minutes(5)))
struct AppDocumentStepTests {
    private let app = AppSerial(1)
    private let other = AppSerial(2)
    private let deleted = AppSerial(3)
    private let start = StoreFixture.start

    /// Two apps with settings, and one whose deletion is not complete.
    private func makeFile() throws -> String {
        let directory = try TemporaryDirectory.make()
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try queue.write { db in
            try Schema.bring(db, to: 35)
            let now = start.milliseconds
            try db.execute(
                sql: """
                    INSERT INTO app (serial, id, created_at, realm, ended_at) VALUES
                        (1, 'com.example.app', \(now), 'home', NULL), (2, 'com.example.other', \(now), 'home', NULL),
                        (3, '#3', \(now), 'home', \(now));
                    """)
            for app in [1, 3] {
                try db.execute(
                    sql: """
                        INSERT INTO item_rules (app, document, set_at, revision, is_applied)
                            VALUES (\(app), '{"items":[]}', \(now + 1), 4, 0);
                        INSERT INTO parameter_rules (app, document, version, set_at)
                            VALUES (\(app), '{"é":1}', 7, \(now + 2));
                        INSERT INTO user_rules (app, sealed, set_at) VALUES (\(app), x'00ff01', \(now + 3));
                        INSERT INTO app_veto (app, address, secret, set_at)
                            VALUES (\(app), 'https://example.com/é', x'00ff02', \(now + 4));
                        INSERT INTO gateway_credential (app, environment, sealed, summary, revision, set_at) VALUES
                            (\(app), 'production', x'00ff03', '{"kind":"é"}', 9, \(now + 5)),
                            (\(app), 'sandbox', x'', '{}', 1, \(now + 6));
                        INSERT INTO app_alert (app, document) VALUES (\(app), '{"title":"é"}');
                        """)
            }
            try db.execute(
                sql: """
                    INSERT INTO item_rules (app, document, set_at, revision, is_applied) VALUES (2, '{}', \(now), 2, 1);
                    UPDATE app SET log_revision = 5 WHERE serial = 1;
                    """)
        }
        try queue.close()
        return directory
    }

    private func document(
        _ kind: AppDocument.Kind, named name: String = "", _ bytes: [UInt8], after milliseconds: Int64, version: Int64
    ) -> AppDocument {
        AppDocument(
            key: AppDocument.Key(kind, of: app, name: name), bytes: bytes, setAt: start.adding(milliseconds: milliseconds),
            version: RegistryVersion(version))
    }

    private var moved: [AppDocument] {
        let hook = SealedDocument(text: "https://example.com/é", sealed: [0, 255, 2])
        let production = SealedDocument(text: #"{"kind":"é"}"#, sealed: [0, 255, 3])
        return [
            document(.itemRules, Array(#"{"items":[]}"#.utf8), after: 1, version: 4),
            document(.parameterRules, Array(#"{"é":1}"#.utf8), after: 2, version: 7),
            document(.userRules, [0, 255, 1], after: 3, version: 1),
            document(.approvalHook, hook.bytes, after: 4, version: 1),
            document(.credential, named: "production", production.bytes, after: 5, version: 9),
            document(.credential, named: "sandbox", SealedDocument(text: "{}", sealed: []).bytes, after: 6, version: 1),
            document(.alertText, Array(#"{"title":"é"}"#.utf8), after: 0, version: 1),
            document(.realm, Array("home".utf8), after: 0, version: 1),
        ]
    }

    @Test func `the settings of apps become documents with the same content`() async throws {
        let store = try SQLiteStore(directory: try makeFile())
        for document in moved { #expect(try await store.document(document.key) == document, "\(document.key)") }
        #expect(Set(moved.map(\.key.kind)) == Set(AppDocument.Kind.allCases))
        for kind in AppDocument.Kind.allCases {
            for name in ["", "production", "sandbox"] {
                #expect(try await store.document(AppDocument.Key(kind, of: deleted, name: name)) == nil, "\(kind)")
            }
        }
        #expect(try await store.apps(with: .realm).map(\.serial) == [app, other])
        #expect(try await store.rowCount(of: "app_document") == moved.count + 2)
        try store.close()
    }

    @Test func `rules that were applied stay so, and the next version is later than all before`() async throws {
        let directory = try makeFile()
        let store = try SQLiteStore(directory: directory)
        #expect(try await store.appsWithUnappliedRules() == [app])
        try await store.markRulesApplied(4, of: app)
        #expect(try await store.appsWithUnappliedRules().isEmpty)
        #expect(try await store.logMark(of: app)?.revision == 5)
        #expect(try await store.registryVersion() == RegistryVersion(9))
        let key = AppDocument.Key(.realm, of: other)
        #expect(try await store.putDocument([1], as: key, at: start) == RegistryVersion(10))
        try store.close()
        let again = try SQLiteStore(directory: directory)
        #expect(try await again.registryVersion() == RegistryVersion(10))
        try again.close()
    }
}
