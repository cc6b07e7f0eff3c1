import StoreConformance
import TestStores
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StoreConformanceTests {
    #if CARILLON_SANITIZED
        /// One kind has all threads, and the sanitizer takes minutes for each.
        static let kinds: [SQLiteStores] = [.file]
    #else
        static let kinds = SQLiteStores.all
    #endif

    @Test(arguments: kinds, StoreCase.all)
    func `a store does`(kind: SQLiteStores, case: StoreCase) async throws { try await `case`.run(kind) }
}
