import Glibc
import KithCommands
import KithTerminal
import KithWeb

/// The tool with the page of `kith web`; its code is in KithWeb.
@main
enum KithWithPage {
  static func main() async {
    KithTool.prepareDispatch()
    #if Web
      await KithTool.main(page: { PageServer($0) })
    #else
      // Not the tool without the page, which would start this program for it again and again.
      Console().warn(
        "this program was built without the page: swift build --traits Web --product kith-web")
      exit(CommandStatus.failure.rawValue)
    #endif
  }
}
