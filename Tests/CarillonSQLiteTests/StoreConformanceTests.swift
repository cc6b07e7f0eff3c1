import StoreConformance
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StoreConformanceTests {
    #if CARILLON_SANITIZED
        /// One kind has all threads, and the sanitizer takes minutes for each.
        static let kinds: [StoreKind] = [.file]
    #else
        static let kinds = StoreKind.allCases
    #endif

    @Test(arguments: kinds, StoreCase.all)
    func `a store does`(kind: StoreKind, case: StoreCase) async throws { try await `case`.run(kind) }
}
