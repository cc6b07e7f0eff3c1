import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

@Suite(.timeLimit(.minutes(5)))
struct WakeChangeWriterTests {
    @Test func `a wake is not written as pushed without the number of its push`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let device = fixture.device.serial
        await #expect(throws: StoreFault.self) {
            try await fixture.sqlite.group.run { db in try WakeChangeWriter(db).write(.pushed, of: device) }
        }
    }
}
