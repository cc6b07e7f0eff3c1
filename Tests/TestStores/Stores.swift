/// The maker of all stores of the server's tests.
package let stores: any StoreMaker = SQLiteStores.memory

/// The makers of stores that a test names in the arguments of a process.
package enum NamedStores: String, CaseIterable, Sendable {
    case sqlite

    package var maker: any StoreMaker {
        switch self {
        case .sqlite: SQLiteStores.gathering
        }
    }
}
