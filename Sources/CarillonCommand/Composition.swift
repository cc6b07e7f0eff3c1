import CarillonCore
import CarillonSQLite

/// The implementations that this executable uses.
enum Composition {
    /// The kind of store that the server and the commands use.
    static let stores: any StoreFactory = SQLiteStoreFactory()
}
