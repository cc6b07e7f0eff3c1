import StoreConformance
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StoreConformanceTests {
    @Test(arguments: StoreKind.allCases, StoreCase.all)
    func `a store does`(kind: StoreKind, case: StoreCase) async throws { try await `case`.run(kind) }
}
