import CarillonCore
import CarillonSQLite

/// What this executable chooses for the parts that do not choose it themselves.
enum Composition {
    /// The kind of store that the server and the commands use.
    static let stores: any StoreFactory = SQLiteStoreFactory()
}
