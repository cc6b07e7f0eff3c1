/// The maker of all stores of the server's tests.
package let stores: any ServerStoreMaker = SQLiteStores()
