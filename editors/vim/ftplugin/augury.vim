setlocal commentstring=%\ %s
setlocal comments=:%
setlocal formatprg=augury\ fmt\ -
